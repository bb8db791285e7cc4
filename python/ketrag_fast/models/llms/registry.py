"""Language models by their spec: `llama-cpp:PATH.gguf`, `openai:MODEL@URL`.

`none`, `heuristic` and `replay:FILE.jsonl` are specs of the `llm` setting too, but no models: nothing can
be asked of them. Each kind of model lives in a module of its own that is imported when it is wanted and
has one function, `open_model(spec, rest, options)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.http.retry import Patience
from ketrag_fast.models.llms.protocol import Cancel, LanguageModel
from ketrag_fast.models.spending import Account

NONE: Final = "none"
HEURISTIC: Final = "heuristic"
REPLAY: Final = "replay"
_MODULES: Final = {
    "llama-cpp": "ketrag_fast.models.llms.llama.model",
    "openai": "ketrag_fast.models.llms.openai",
}
_FORMS: Final = "none, heuristic, llama-cpp:PATH.gguf, openai:MODEL@URL, replay:FILE.jsonl"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is run. None of these may change what it would reply, so none is in its fingerprint.

    `slots`: replies under way at once (0 lets the backend choose). `context`: tokens of prompt and reply
    together that memory is taken for (None: as many as the work needs). `threads`: 0 is all cores.
    `account` counts and limits what an endpoint costs; `patience` says how often and how long to try.
    `cancel` is looked at while the model is opened; Cancelled is then raised.
    """

    offline: bool = False
    slots: int = 0
    context: int | None = None
    threads: int = 0
    account: Account | None = None
    patience: Patience | None = None
    cancel: Cancel | None = None

    def __post_init__(self) -> None:
        if self.slots < 0 or self.threads < 0 or (self.context is not None and self.context < 1):
            raise ConfigError("slots and threads count from 0 up, a context from 1 up")


def parse_spec(spec: str) -> tuple[str, str]:
    """(kind, the rest), or a ConfigError that lists the forms."""
    if spec in (NONE, HEURISTIC):
        return spec, ""
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in (*_MODULES, REPLAY) or not rest.strip():
        raise ConfigError(f"language model {spec!r} is not one of {_FORMS}")
    return kind, rest


def is_model(spec: str) -> bool:
    """Whether the spec names something that can be asked; ConfigError if it names nothing at all."""
    return parse_spec(spec)[0] in _MODULES


def open_model(spec: str, options: ModelOptions | None = None) -> LanguageModel:
    """A model that is ready to be asked; every way to fail is a typed error.

    ConfigError (the spec), BackendMissing (names the extra), BackendError (the file, the endpoint),
    NetworkForbidden.
    """
    kind, rest = parse_spec(spec)
    if kind not in _MODULES:
        raise ConfigError(
            f"{spec!r} is no language model that can be asked",
            hint="give llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    opened = import_module(_MODULES[kind]).open_model(spec, rest, options or ModelOptions())
    return cast("LanguageModel", opened)
