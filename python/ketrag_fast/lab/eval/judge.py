"""Win rate: which of two answers a named language model prefers, question by question.

Each pair is shown in both orders, because judges favour a place; only a preference that both orders agree on
counts, anything else is a tie, and a tie is no win (as in the KET-RAG paper). Equal answers are ties that
nobody is asked about. What a judge writes is read for one number and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.lab.eval.compare import ComparedRun
from ketrag_fast.lab.eval.metrics import bootstrap_interval
from ketrag_fast.models.tasks.driver import Driver
from ketrag_fast.models.tasks.task import ParsedReply, Task

if TYPE_CHECKING:
    from ketrag_fast.models.llms.registry import ModelOptions

INSTRUCTIONS: Final = (
    "Two answers to one question follow. Say which of them is better. A true answer is better than one that "
    "is false or made up; of two true answers the more helpful one is better: it answers what was asked, "
    "completely and without needless words. Where neither is better, or you cannot tell, the rating is 0. "
    'Reply with JSON alone: {"reason": at most 50 words, "rating": 0, 1 or 2}.'
)
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"reason": {"type": "string", "maxLength": 400}, "rating": {"enum": [0, 1, 2]}},
    "required": ["reason", "rating"],
    "additionalProperties": False,
}
TOKENS: Final = 256
SECONDS: Final = 120.0
_RATING: Final = re.compile(r'"rating"\s*:\s*"?([012])\b')
_LONGEST: Final = 20_000


def prompt_hash() -> str:
    """SHA-256 of all that the judge is told beside question and answers."""
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
        """Share of questions that B wins; ties are not won."""
        return self.wins / self.n

    def to_json(self) -> dict[str, Any]:
        """As the command prints it."""
        return {
            "n": self.n,
            "rate": self.rate,
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
            "unusable": self.unusable,
            "ci95": list(self.ci95),
            "judge": dict(self.judge),
        }


class Judge:
    """One opened language model. Close it when done."""

    def __init__(self, spec: str, options: ModelOptions | None = None) -> None:
        """Raises ConfigError where `spec` names no model that can be asked, and what opening it raises."""
        from ketrag_fast.models.llms.registry import is_model, open_model

        if not is_model(spec):
            raise ConfigError(
                f"--judge {spec}: not a language model that can be asked",
                hint="name one: llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self._model = open_model(spec, options)
        identity = self._model.identity
        self.about = {"spec": identity.spec, "fingerprint": identity.fingerprint, "prompt": prompt_hash()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._model.close()

    def win_rate(self, a: ComparedRun, b: ComparedRun) -> WinRate | None:
        """B against A, on the questions that both sides answered; None where there is none."""
        texts = {question.id: question.text for question in a.questions}
        left = {r.question: r.answer for r in a.results}
        right = {r.question: r.answer for r in b.results}
        pairs = [
            (texts[q], one, other)
            for q, one in left.items()
            if one is not None and (other := right.get(q)) is not None
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


def options_for(settings: Settings) -> ModelOptions:
    """How the settings want a model to be run. One reply at a time: a verdict must not depend on company."""
    from ketrag_fast.models.llms.registry import ModelOptions

    return ModelOptions(offline=settings.offline, threads=settings.threads, slots=1)


def rating_of(text: str) -> int | None:
    """The rating in a judge's reply; None where there is none. Of several the last, which concludes."""
    found = _RATING.findall(text[:_LONGEST])
    return int(found[-1]) if found else None


def render_win_rate(found: WinRate, name: str) -> str:
    """One line for people."""
    low, high = (100 * x for x in found.ci95)
    return (
        f"win rate of {name}: {100 * found.rate:.1f} % ({low:.1f} to {high:.1f}) of {found.n}; "
        f"{found.wins} won, {found.losses} lost, {found.ties} tied, {found.unusable} replies unusable; "
        f"judge {found.judge['spec']}, prompt {str(found.judge['prompt'])[:12]}"
    )


class Sides(NamedTuple):
    """Two answers to a question in the order in which they are shown."""

    number: int
    """2n shows the first answer of pair n first, 2n + 1 the second."""
    question: str
    first: str
    second: str

    @property
    def text(self) -> str:
        """As the judge reads it."""
        shown = [_one_paragraph(text) for text in (self.question, self.first, self.second)]
        return f"Question: {shown[0]}\nAnswer 1: {shown[1]}\nAnswer 2: {shown[2]}"


def _sides(pairs: list[tuple[str, str, str]]) -> Iterator[Sides]:
    """Both orders of each pair; equal answers need no judge."""
    for n, (question, a, b) in enumerate(pairs):
        if _plain(a) != _plain(b):
            yield Sides(2 * n, question, a, b)
            yield Sides(2 * n + 1, question, b, a)


def _parse_rating(sides: Sides, text: str, finish: str) -> ParsedReply[int] | None:
    found = rating_of(text)
    return None if found is None else ParsedReply(found)


TASK: Final[Task[Sides, int]] = Task(
    name="judge",
    version=1,
    instructions=INSTRUCTIONS,
    text=lambda sides: sides.text,
    parse=_parse_rating,
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
    """1 where both orders prefer B, -1 where both prefer A, else 0."""
    straight, turned = ratings.get(2 * n), ratings.get(2 * n + 1)
    return {(2, 1): 1, (1, 2): -1}.get((straight or 0, turned or 0), 0)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _one_paragraph(text: str) -> str:
    """One paragraph of bounded length: an answer cannot pretend to be the other one by its layout."""
    return _plain(text)[:4000].encode("utf-8", "replace").decode("utf-8") or "(no answer)"
