"""HyDE (Gao et al. 2023): rank by the vector of a passage that an LLM writes in answer to the question.

The model writes one passage per question with greedy decoding, so the ranking is deterministic. The passage
is only embedded and never enters a context. If a reply is unusable, the question itself is embedded and the
context has a warning.
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
    from ketrag_fast.models.llms.open_models import Models
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
    """Return the SHA-256 of the prompt without the question."""
    return hashlib.sha256(json.dumps([INSTRUCTIONS, TOKENS]).encode("ascii")).hexdigest()


@cache
def task() -> Task[str, str]:
    """Return the task for the model. Built on first use, because most queries do not need it."""
    from ketrag_fast.models.tasks.task import ParsedReply, Task

    def passage(question: str, text: str, finish: str) -> ParsedReply[str] | None:
        """Return the passage, shortened. A reply cut by a limit on tokens or seconds is used, too."""
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
    """Writes passages with a model that the first query opens. Safe for concurrent use by threads."""

    def __init__(self, spec: str, models: Models, permit: Callable[[], None] | None = None) -> None:
        """Create a writer for the model of a spec. Raises ModeUnavailable if the spec does not name a model.

        `permit` is called before the model is used, and raises if nothing may be sent to it.
        """
        from ketrag_fast.models.llms.registry import is_model

        if not is_model(spec):
            raise ModeUnavailable(
                f"writing text needs a language model, got {spec!r}",
                hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self.spec = spec
        self._models = models
        self._permit = permit
        self._recent: Remembered[str | None] = Remembered(REMEMBERED)

    def passages(
        self, questions: Sequence[str], seconds: float | None = None
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return a text to embed for each question, and warnings. Cached passages do not wait for the model.

        Raises:
            DeadlineExceeded: Not all passages were written after `seconds`.
            BackendMissing, BackendError, NetworkForbidden: The model cannot be opened.
        """
        passages = self._recent.known(questions)
        missing = [text for text in dict.fromkeys(questions) if text not in passages]
        if missing:
            passages |= self._write(missing, Limited(None, seconds, time.monotonic()))
        lost = sum(passages[question] is None for question in questions)
        warning = f"hyde: {lost} of {len(questions)} questions have no passage; their own text was embedded"
        texts = [passages[question] or question for question in questions]
        return texts, (warning,) if lost else ()

    def require_permission(self) -> None:
        """Raise EndpointNotConfirmed if the model is an endpoint that only the index names."""
        if self._permit is not None:
            self._permit()

    def open(self) -> None:
        """Open a model file, so that a wrong one is an error now. Loads no weights; contacts no endpoint.

        Raises BackendMissing, BackendError or ConfigError.
        """
        from ketrag_fast.models.llms.registry import parse_spec

        if parse_spec(self.spec)[0] != "openai":
            with self._models.lend(self.spec):
                pass

    def about(self) -> dict[str, Any]:
        """Return the model and the hash of the prompt, for the record of a run."""
        self.require_permission()
        identity = self._models.identity(self.spec)
        return {"spec": identity.spec, "fingerprint": identity.fingerprint, "prompt": prompt_hash()}

    def _write(self, questions: Sequence[str], limit: Limited) -> dict[str, str | None]:
        from ketrag_fast.models.tasks.driver import Driver

        self.require_permission()
        with self._models.lend(self.spec, limit.left) as model:
            passages = self._recent.known(questions)  # written by others meanwhile
            driver = Driver(model, limit=limit)
            items = driver.items(task(), [text for text in questions if text not in passages])
            driver.run(items)
        written = {item.about: next(iter(item.values), None) for item in items if item.kept}
        self._recent.add(written)
        passages |= written
        if len(passages) < len(questions):
            raise DeadlineExceeded(
                f"{self.spec} wrote {len(passages)} of {len(questions)} passages before the deadline",
                hint="allow more time, or use another mode",
            )
        return passages


def writer_of(settings: Settings, models: Models, permit: Callable[[str], None] | None = None) -> Hyde | None:
    """Return the model that answers and writes the passages of mode hyde, or None.

    It is the setting `answer_llm`, else `llm` if that is a language model; "none" means no model. An
    extractive `answer_llm` writes nothing, so that `llm` is used. `permit`
    raises if nothing may be sent to the model of a spec that only the index names.
    """
    from ketrag_fast.models.extractive import is_extractive
    from ketrag_fast.models.llms.registry import NONE, is_model

    spec = settings.answer_llm
    if spec == NONE:
        return None
    if spec is None or is_extractive(spec):
        spec = settings.llm
        if not is_model(spec):
            return None
        if permit is not None:
            return Hyde(spec, models, partial(permit, spec))
    return Hyde(spec, models)
