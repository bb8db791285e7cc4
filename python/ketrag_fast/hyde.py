"""HyDE (Gao et al. 2023): a question is ranked by the vector of a passage that a model writes for it.

One passage for each question, greedily decoded, so that the same model gives the same ranking. What the
model writes is only embedded: it never enters a context. A reply that cannot be used costs its question
the passage, not the answer: the question's own text stands in, and a warning says so.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.config import Settings
from ketrag_fast.errors import ModeUnavailable

if TYPE_CHECKING:
    from ketrag_fast.backends.llms.models import Models
    from ketrag_fast.backends.llms.protocol import Reply

INSTRUCTIONS: Final = (
    "Write one short passage, as an encyclopedia would have it, that answers the question. "
    "If you do not know the answer, write what such a passage would probably say. "
    "Write the passage alone, in the language of the question, without any heading."
)
TOKENS: Final = 256
SECONDS: Final = 120.0
REMEMBERED: Final = 1024
_LONGEST: Final = 4000


def prompt_hash() -> str:
    """SHA-256 of all that the model is told beside the question."""
    return hashlib.sha256(json.dumps([INSTRUCTIONS, TOKENS]).encode("ascii")).hexdigest()


class Hyde:
    """Writes passages with one of the index's models, opened by the first question. Safe for many threads."""

    def __init__(self, spec: str, models: Models) -> None:
        """Raises ModeUnavailable where `spec` names no model that can be asked."""
        from ketrag_fast.backends.llms.registry import is_model

        if not is_model(spec):
            raise ModeUnavailable(
                f"mode hyde needs a language model that writes passages, and {spec!r} is none",
                hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self.spec = spec
        self._models = models
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, str | None] = OrderedDict()

    def passages(self, questions: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """A text to embed for each question, and warnings.

        Raises what opening the model raises (BackendMissing, BackendError, NetworkForbidden).
        """
        with self._lock:
            new = [text for text in dict.fromkeys(questions) if text not in self._recent]
            written = dict(zip(new, self._write(new), strict=True)) if new else {}
            found = [written[q] if q in written else self._recent[q] for q in questions]
            for question, text in zip(questions, found, strict=True):
                self._recent[question] = text
                self._recent.move_to_end(question)
            while len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
        lost = sum(text is None for text in found)
        told = (
            f"hyde: no passage was written for {lost} of {len(questions)} questions, which stand as they are"
        )
        texts = [question if text is None else text for question, text in zip(questions, found, strict=True)]
        return texts, (told,) if lost else ()

    def about(self) -> dict[str, Any]:
        """Which model and which prompt, for the record of a run."""
        with self._models.lend(self.spec) as model:
            identity = model.identity
        return {"spec": identity.spec, "fingerprint": identity.fingerprint, "prompt": prompt_hash()}

    def _write(self, questions: Sequence[str]) -> list[str | None]:
        from ketrag_fast.backends.llms.protocol import Limits, Prompt

        prompts = (Prompt(n, INSTRUCTIONS, question) for n, question in enumerate(questions))
        found: list[str | None] = [None] * len(questions)
        with self._models.lend(self.spec) as model:
            for reply in model.replies(prompts, Limits(tokens=TOKENS, seconds=SECONDS)):
                if 0 <= reply.number < len(found):
                    found[reply.number] = _usable(reply)
        return found


def writer_of(settings: Settings, models: Models) -> Hyde | None:
    """Who writes passages under these settings: `writer`, else the index's `llm` if it can be asked."""
    from ketrag_fast.backends.llms.registry import is_model

    spec = settings.writer
    if spec == "none":
        return None
    if spec is None:
        spec = settings.llm
        if not is_model(spec):
            return None
    return Hyde(spec, models)


def _usable(reply: Reply) -> str | None:
    """The passage, of bounded length; a cap on tokens or seconds leaves a passage too."""
    if reply.finish in ("error", "cancelled", "repetition"):
        return None
    text = " ".join(reply.text[:_LONGEST].encode("utf-8", "replace").decode("utf-8").split())
    return text or None
