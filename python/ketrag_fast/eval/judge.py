"""Win rate: which of two answers a language model prefers, question by question.

Each pair is judged in both orders, because judges are biased by position; only a preference that both orders
agree on counts. Anything else is a tie, and a tie does not win (as in the KET-RAG paper). Equal answers are
ties without a call. Only the rating is read from a judge's reply.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.eval.compare import ComparedRun
from ketrag_fast.eval.metrics import bootstrap_interval
from ketrag_fast.models.tasks.driver import Driver
from ketrag_fast.models.tasks.task import ParsedReply, Task, object_schema
from ketrag_fast.records import asdict, dataclass

if TYPE_CHECKING:
    from ketrag_fast.models.llms.registry import ModelOptions

INSTRUCTIONS: Final = (
    "Two answers to one question follow. Say which of them is better. A true answer is better than one that "
    "is false or made up; of two true answers the more helpful one is better: it answers what was asked, "
    "completely and without needless words. Where neither is better, or you cannot tell, the rating is 0. "
    'Reply with JSON alone: {"reason": at most 50 words, "rating": 0, 1 or 2}.'
)
SCHEMA: Final = object_schema({"reason": {"type": "string", "maxLength": 400}, "rating": {"enum": [0, 1, 2]}})
TOKENS: Final = 256
SECONDS: Final = 120.0
_RATING: Final = re.compile(r'"rating"\s*:\s*"?([012])\b')
_LONGEST: Final = 20_000


def prompt_hash() -> str:
    """Return the SHA-256 of the judge's prompt without question and answers."""
    return hashlib.sha256(json.dumps([INSTRUCTIONS, SCHEMA, TOKENS]).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often B is preferred to A over `n` questions; `unusable` counts replies without a rating."""

    n: int
    wins: int
    losses: int
    ties: int
    unusable: int
    ci95: tuple[float, float]
    judge: Mapping[str, Any]

    @property
    def rate(self) -> float:
        """Share of questions that B wins; ties do not win."""
        return self.wins / self.n

    def to_json(self) -> dict[str, Any]:
        """Return the win rate as the command prints it."""
        return {"n": self.n, "rate": self.rate, **asdict(self), "ci95": list(self.ci95)}


class Judge:
    """An opened language model. Close it when done."""

    def __init__(self, spec: str, options: ModelOptions | None = None) -> None:
        """Open the model of `spec`. Raises ConfigError if it names no language model."""
        from ketrag_fast.models.llms.registry import is_model, open_model

        if not is_model(spec):
            raise ConfigError(
                f"--judge {spec}: not a language model",
                hint="use llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self._model = open_model(spec, options)
        identity = self._model.identity
        self.about = {"spec": identity.spec, "fingerprint": identity.fingerprint, "prompt": prompt_hash()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._model.close()

    def win_rate(self, a: ComparedRun, b: ComparedRun) -> WinRate | None:
        """Return B against A on the questions that both answered; None if there are none."""
        texts = {question.id: question.text for question in a.questions}
        right = {r.question: r.answer for r in b.results}
        pairs = [
            (texts[r.question], r.answer, other)
            for r in a.results
            if r.answer is not None and (other := right.get(r.question)) is not None
        ]
        if not pairs:
            return None
        driver = Driver(self._model)
        items = driver.items(TASK, list(_sides(pairs)))
        driver.run(items)
        ratings = {item.about.number: next(iter(item.values), None) for item in items}
        values = [_value(n, ratings) for n in range(len(pairs))]
        interval = bootstrap_interval([float(value > 0) for value in values])
        assert interval is not None  # noqa: S101 - there are pairs
        return WinRate(
            n=len(pairs),
            wins=sum(value > 0 for value in values),
            losses=sum(value < 0 for value in values),
            ties=sum(value == 0 for value in values),
            unusable=sum(rating is None for rating in ratings.values()),
            ci95=interval,
            judge=self.about,
        )


def judge_options(settings: Settings) -> ModelOptions:
    """Return the model options for judging: single replies, so that verdicts do not depend on batching."""
    from ketrag_fast.models.llms.registry import ModelOptions

    return ModelOptions(offline=settings.offline, threads=settings.threads, slots=1)


def parse_rating(_: Sides, text: str, finish: str) -> ParsedReply[int] | None:
    """Return the last rating in a judge's reply, which concludes it; None without one."""
    found = _RATING.findall(text[:_LONGEST])
    return ParsedReply(int(found[-1])) if found else None


def render_win_rate(found: WinRate, name: str) -> str:
    """Return the win rate as one line for people."""
    low, high = (100 * x for x in found.ci95)
    return (
        f"win rate of {name}: {100 * found.rate:.1f} % ({low:.1f} to {high:.1f}) of {found.n}; "
        f"{found.wins} won, {found.losses} lost, {found.ties} tied, {found.unusable} replies unusable; "
        f"judge {found.judge['spec']}, prompt {str(found.judge['prompt'])[:12]}"
    )


class Sides(NamedTuple):
    """Two answers to a question, in the order shown to the judge."""

    number: int
    """2n shows A's answer of pair n first, 2n + 1 B's."""
    question: str
    first: str
    second: str

    @property
    def text(self) -> str:
        """The prompt for the judge."""
        shown = [_one_paragraph(text) for text in (self.question, self.first, self.second)]
        return f"Question: {shown[0]}\nAnswer 1: {shown[1]}\nAnswer 2: {shown[2]}"


def _sides(pairs: list[tuple[str, str, str]]) -> Iterator[Sides]:
    """Return both orders of each pair, without equal answers."""
    for n, (question, a, b) in enumerate(pairs):
        if _plain(a) != _plain(b):
            yield Sides(2 * n, question, a, b)
            yield Sides(2 * n + 1, question, b, a)


TASK: Final[Task[Sides, int]] = Task(
    name="judge",
    version=1,
    instructions=INSTRUCTIONS,
    text=lambda sides: sides.text,
    parse=parse_rating,
    schema=SCHEMA,
    parts=lambda sides: (str(sides.number), sides.text),
    tokens=TOKENS,
    seconds=SECONDS,
    attempts=(1, 1),
    calls=1,
    subject="the question with its two answers",
    activity="judging answers",
)


def _value(n: int, ratings: Mapping[int, int | None]) -> int:
    """Return 1 if both orders prefer B, -1 if both prefer A, else 0."""
    both = ratings.get(2 * n), ratings.get(2 * n + 1)
    return (both == (2, 1)) - (both == (1, 2))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _one_paragraph(text: str) -> str:
    """Return text as one paragraph of bounded length, so that its layout cannot imitate the other answer."""
    return _plain(text)[:4000].encode("utf-8", "replace").decode("utf-8") or "(no answer)"
