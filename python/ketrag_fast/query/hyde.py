"""HyDE (Gao et al. 2023): a question is ranked by the vector of a passage that a model writes for it.

One passage for each question, greedily decoded, so that the same model gives the same ranking. What the
model writes is only embedded: it never enters a context. A reply that cannot be used costs its question
the passage, not the answer: the question's own text stands in, and a warning says so.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import DeadlineExceeded, ModeUnavailable
from ketrag_fast.models.lru import Remembered

if TYPE_CHECKING:
    from ketrag_fast.models.llms.models import Models
    from ketrag_fast.models.tasks.task import Task

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


@cache
def task() -> Task[str, str]:
    """What is asked about a question. Made when it is needed: most questions are answered without it."""
    from ketrag_fast.models.tasks.task import ParsedReply, Task

    def passage(question: str, text: str, finish: str) -> ParsedReply[str] | None:
        """Of bounded length; a cap on tokens or seconds leaves a passage too."""
        if finish in ("cancelled", "repetition"):
            return None
        words = " ".join(text[:_LONGEST].encode("utf-8", "replace").decode("utf-8").split())
        return ParsedReply(words) if words else None

    return Task(
        name="hyde",
        version=1,
        instructions=INSTRUCTIONS,
        text=str,
        parse=passage,
        tokens=TOKENS,
        seconds=SECONDS,
        attempts=(1, 1),
        calls=1,
        subject="the question",
        activity="writing passages",
    )


class Hyde:
    """Writes passages with one of the index's models, opened by the first question. Safe for many threads."""

    def __init__(self, spec: str, models: Models, permit: Callable[[], None] | None = None) -> None:
        """Raises ModeUnavailable where `spec` names no model that can be asked. `permit` is called before the
        model is used, and raises if nothing may be sent to it.
        """
        from ketrag_fast.models.llms.registry import is_model

        if not is_model(spec):
            raise ModeUnavailable(
                f"mode hyde needs a language model that writes passages, and {spec!r} is none",
                hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self.spec = spec
        self._models = models
        self._permit = permit
        self._recent: Remembered[str | None] = Remembered(REMEMBERED)

    def passages(
        self, questions: Sequence[str], seconds: float | None = None
    ) -> tuple[list[str], tuple[str, ...]]:
        """A text to embed for each question, and warnings. Remembered ones do not wait for the model.

        Raises DeadlineExceeded where not all are there after `seconds`, and what opening the model raises
        (BackendMissing, BackendError, NetworkForbidden).
        """
        found = self._recent.known(questions)
        missing = [text for text in dict.fromkeys(questions) if text not in found]
        if missing:
            found |= self._write(missing, Limited(None, seconds, time.monotonic()))
        lost = sum(found[question] is None for question in questions)
        warning = (
            f"hyde: no passage was written for {lost} of {len(questions)} questions, which stand as they are"
        )
        texts = [found[question] or question for question in questions]
        return texts, (warning,) if lost else ()

    def require_permission(self) -> None:
        """Raise EndpointNotConfirmed if the model is an endpoint that only the index names."""
        if self._permit is not None:
            self._permit()

    def about(self) -> dict[str, Any]:
        """Return the model and the hash of the prompt, for the record of a run."""
        self.require_permission()
        identity = self._models.identity(self.spec)
        return {"spec": identity.spec, "fingerprint": identity.fingerprint, "prompt": prompt_hash()}

    def _write(self, questions: Sequence[str], limit: Limited) -> dict[str, str | None]:
        from ketrag_fast.models.tasks.driver import Driver

        self.require_permission()
        with self._models.lend(self.spec, limit.left) as model:
            found = self._recent.known(questions)  # others may have asked the same while this waited
            driver = Driver(model, limit=limit)
            items = driver.items(task(), [text for text in questions if text not in found])
            driver.run(items)
        made = {item.about: next(iter(item.values), None) for item in items if item.kept}
        self._recent.add(made)
        found |= made
        if len(found) < len(questions):
            raise DeadlineExceeded(
                f"{self.spec} wrote {len(found)} of {len(questions)} passages before the deadline",
                hint="give more seconds, or another mode",
            )
        return found


def writer_of(settings: Settings, models: Models, permit: Callable[[str], None] | None = None) -> Hyde | None:
    """Return the model that answers and writes the passages of mode hyde, or None.

    It is the setting `answer_llm`, else `llm` if that is a language model; "none" means no model. `permit`
    raises if nothing may be sent to the model of a spec that only the index names.
    """
    from ketrag_fast.models.llms.registry import NONE, is_model

    spec = settings.answer_llm
    if spec == NONE:
        return None
    if spec is None:
        spec = settings.llm
        if not is_model(spec):
            return None
        if permit is not None:
            return Hyde(spec, models, partial(permit, spec))
    return Hyde(spec, models)
