"""`llama-cpp:PATH.gguf`: a local LLM, run with the low-level API of llama-cpp-python.

Several prompts run at once. They share the evaluated instructions (a prefix that is computed once and
copied), and each step decodes one token for all of them in one batch; when a reply ends, the next prompt
takes its slot. Decoding is greedy with a grammar made from the schema, so a reply only depends on its prompt.
This is exact with one slot; with several, batching may change rounding.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.embedders.fingerprint import digest
from ketrag_fast.models.llms.llama.chat_template import PLAIN, ChatTemplate
from ketrag_fast.models.llms.llama.gguf_file import cores, free_memory, read_gguf
from ketrag_fast.models.llms.llama.grammar import grammar_of
from ketrag_fast.models.llms.llama.slots import Slots
from ketrag_fast.models.llms.llama.weights import LlamaWeights, WeightsChoice
from ketrag_fast.models.llms.protocol import Cancel, Limits, ModelIdentity, ModelReply, Prompt
from ketrag_fast.models.llms.registry import ModelOptions

RULE: Final = "greedy, compact grammar/2"
DEFAULT_SLOTS: Final = 8
_MOST_SLOTS: Final = 64
_SMALL: Final = 32 << 20


def open_model(spec: str, rest: str, options: ModelOptions) -> LlamaCppModel:
    """Open the model of `PATH.gguf`, or of `PATH.gguf#plain` without its chat template."""
    path, _, how = rest.partition("#") if rest.endswith(f"#{PLAIN}") else (rest, "", "")
    return LlamaCppModel(
        Path(path).expanduser(),
        spec=spec,
        slots=options.slots,
        context=options.context,
        threads=options.threads,
        template="plain" if how else "model",
    )


class LlamaCppModel:
    """A `LanguageModel`. Opening checks the file; weights are loaded on first use.

    `slots` 0 is the default number; `context` None is as much as prompts need, up to the trained context.
    Raises BackendMissing, BackendError (file, template), ConfigError.
    """

    def __init__(
        self,
        path: Path,
        *,
        spec: str | None = None,
        slots: int = 0,
        context: int | None = None,
        threads: int = 0,
        template: Literal["model", "plain"] = "model",
    ) -> None:
        self._file = read_gguf(path)
        if slots > _MOST_SLOTS:
            raise ConfigError(f"slots must be at most {_MOST_SLOTS}, got {slots}")
        trained = self._file.context
        if context is not None and trained is not None and context > trained:
            raise ConfigError(f"context is {context:,} tokens, but {path} was trained for {trained:,}")
        if template == "model" and self._file.template is None:
            raise BackendError(
                f"{path} has no chat template: it was not trained to follow instructions",
                hint=f"use an instruct model, or this one without a template: llama-cpp:{path}#{PLAIN}",
            )
        self._spec = spec or f"llama-cpp:{path}"
        # The layers of a very small model are too short to share between cores.
        few = 1 if self._file.size < _SMALL else cores()
        self._slots, self._threads = slots or DEFAULT_SLOTS, threads or few
        self._limit = context or trained or 4096
        self._template = template
        self._opened: Slots | None = None
        self._weights: LlamaWeights | None = None
        self._busy = False

    @cached_property
    def identity(self) -> ModelIdentity:
        """See `LanguageModel`. The fingerprint covers the content of the file and the decoding rules."""
        facts = {"kind": "llama-cpp", "template": self._template, "rule": RULE}
        try:
            library = version("llama-cpp-python")
        except PackageNotFoundError:
            library = "unknown"
        details = {
            "architecture": self._file.architecture,
            "name": self._file.facts.get("general.name", ""),
            "bytes": self._file.size,
            "library": f"llama-cpp-python {library}",
            "template": self._template,
        }
        return ModelIdentity(self._spec, digest([("model", self._file.path)], facts), self._limit, details)

    def count(self, text: str) -> int:
        """See `LanguageModel`."""
        return len(self._ready.weights.tokenise(text, own=False))

    def room(self, prompt: Prompt) -> int | None:
        """See `LanguageModel`."""
        prefix, rest = self._ready.tokens(prompt)
        return self._limit - len(prefix) - len(rest)

    def replies(
        self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None = None
    ) -> Generator[ModelReply, None, None]:
        """See `LanguageModel`. Raises ConfigError if the schema is not supported."""
        for event in self._events(prompts, limits, cancel, pieces=False):
            if isinstance(event, ModelReply):
                yield event

    def stream(
        self, prompt: Prompt, limits: Limits, cancel: Cancel | None = None
    ) -> Iterator[str | ModelReply]:
        """See `LanguageModel`."""
        yield from self._events([prompt], limits, cancel, pieces=True)

    def close(self) -> None:
        """See `LanguageModel`."""
        if self._opened is not None:
            self._opened.close()
        if self._weights is not None:
            self._weights.close()
        self._opened = self._weights = None

    @property
    def slots(self) -> int:
        """The number of concurrent replies, which may be lower than requested if memory is short."""
        return self._opened.slots if self._opened is not None and self._opened.slots else self._slots

    def _events(
        self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None, *, pieces: bool
    ) -> Iterator[str | ModelReply]:
        if self._busy:
            raise ConfigError("the model is in use; open it again for concurrent use")
        grammar = None if limits.schema is None else grammar_of(limits.schema)
        self._busy = True
        try:
            yield from self._ready.run(iter(prompts), limits, grammar, cancel, pieces=pieces)
        finally:
            self._busy = False

    def load(self, cancel: Cancel | None = None) -> None:
        """Load the weights if necessary. Raises Cancelled when `cancel` returns True."""
        if self._opened is None:
            free = free_memory()
            if free is not None and self._file.size > free:  # every token would read it from the disk
                raise BackendError(
                    f"{self._file.path} needs {self._file.size / 2**20:,.0f} MB, "
                    f"but {free / 2**20:,.0f} MB of memory are free",
                    hint="use a smaller model or a smaller quantisation (Q4_K_M)",
                )
            weights = self._weights = LlamaWeights(self._file.path, cancel)
            source = None if self._template == PLAIN else self._file.template
            template = ChatTemplate(source, weights.sign(weights.bos), weights.sign(weights.eos))
            self._opened = Slots(
                self._file,
                weights,
                WeightsChoice(weights),
                template,
                slots=self._slots,
                limit=self._limit,
                threads=self._threads,
                free=None if free is None else free - self._file.size,
            )

    @property
    def _ready(self) -> Slots:
        """The slots, with loaded weights."""
        self.load()
        assert self._opened is not None  # noqa: S101 - they were loaded
        return self._opened
