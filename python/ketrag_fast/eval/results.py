"""The scores of one question for one mode and budget, with the details that explain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ketrag_fast.errors import InputError

HITS = (1, 5, 10)
OPTION_HITS = (1, 3)
"""Cuts for questions with options, as CG-RAG reports them."""
CUT = 10
"""Cut of nDCG and precision."""


@dataclass(frozen=True, slots=True)
class Result:
    """Scores of one question; None does not apply.

    `covered` is meaningless for a question answered by yes or no (`yes_no`), which does not count for
    coverage. `found` has the documents of the context by rank, each once; `rank` is that of the first gold
    one, 0 without one. `ndcg` and `precision` are of the first ten, `average_precision` of all: documents
    outside the budget count as not found. `decided` is (gold, answered) of a question of yes, no or maybe,
    `option_rank` the rank of the right option. `em`, `f1` (KET-RAG's), `f1_plain` (HippoRAG's) and
    `bertscore` score `answer`. `why` has source and explanation of each passage of the context, if requested.
    """

    question: str
    mode: str
    budget: int
    ran: str
    tokens: int
    ms: float | None = None
    covered: bool | None = None
    yes_no: bool = False
    recall: float | None = None
    all_gold: bool | None = None
    rank: int | None = None
    found: tuple[str, ...] = ()
    answer: str | None = None
    em: float | None = None
    f1: float | None = None
    f1_plain: float | None = None
    bertscore: float | None = None
    ndcg: float | None = None
    precision: float | None = None
    average_precision: float | None = None
    decided: tuple[str, str | None] | None = None
    option_rank: int | None = None
    why: tuple[Mapping[str, Any], ...] = ()

    @property
    def reciprocal_rank(self) -> float | None:
        """1 / rank of the first gold document, 0 if it is not in the context."""
        return None if self.rank is None else 1.0 / self.rank if self.rank else 0.0

    def hit(self, k: int) -> float | None:
        """Return whether a gold document is among the first `k`."""
        return None if self.rank is None else float(0 < self.rank <= k)

    def to_json(self) -> dict[str, Any]:
        """Return all fields, `why` only if it is not empty; a line of `results.jsonl`."""
        found = asdict(self)
        return found if self.why else {name: value for name, value in found.items() if name != "why"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """Return the result from the output of `to_json`. Raises InputError for invalid data."""
        try:
            known = {f.name: data[f.name] for f in fields(cls) if f.name != "why"}
            if known["decided"] is not None:
                gold, said = known["decided"]
                known["decided"] = (str(gold), None if said is None else str(said))
            why = tuple(dict(passage) for passage in data.get("why", ()))
            result = cls(**{**known, "found": tuple(map(str, known["found"])), "why": why})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a valid result of an evaluation: {error}") from error
        scores = (result.recall, result.ndcg, result.precision, result.average_precision)
        numbers = (*scores, result.ms, result.em, result.f1, result.f1_plain, result.bertscore)
        ranks = (rank for rank in (result.rank, result.option_rank) if rank is not None)
        whole = (result.budget, result.tokens, *ranks)
        if (
            not all(isinstance(x, str) for x in (result.question, result.mode, result.ran))
            or not all(isinstance(x, int) and x >= 0 for x in whole)
            or not all(x is None or isinstance(x, (int, float)) for x in numbers)
        ):
            raise InputError("not a valid result of an evaluation: a field has the wrong type")
        return result


def _getter(name: str) -> Callable[[Result], float | None]:
    def value(result: Result) -> float | None:
        found = getattr(result, name)
        return None if found is None else float(found)

    return value


def _right(result: Result) -> float | None:
    return None if result.decided is None else float(result.decided[0] == result.decided[1])


def _hit(k: int) -> Callable[[Result], float | None]:
    return lambda result: result.hit(k)


def _option_getter(k: int) -> Callable[[Result], float | None]:
    return lambda r: None if r.option_rank is None else float(0 < r.option_rank <= k)


def _option_mrr(result: Result) -> float | None:
    return None if result.option_rank is None else 1.0 / result.option_rank


METRICS: Mapping[str, Callable[[Result], float | None]] = {
    "coverage": lambda result: None if result.yes_no or result.covered is None else float(result.covered),
    "recall": _getter("recall"),
    "all_gold": _getter("all_gold"),
    "mrr": _getter("reciprocal_rank"),
    **{f"hit@{k}": _hit(k) for k in HITS},
    f"ndcg@{CUT}": _getter("ndcg"),
    f"p@{CUT}": _getter("precision"),
    "map": _getter("average_precision"),
    "em": _getter("em"),
    "f1": _getter("f1"),
    "f1_plain": _getter("f1_plain"),
    "bertscore": _getter("bertscore"),
    "accuracy": _right,
    "option_mrr": _option_mrr,
    **{f"option_hit@{k}": _option_getter(k) for k in OPTION_HITS},
    "tokens": _getter("tokens"),
}
"""Each metric as a value of one question; None if it does not apply."""

OF_ANSWERS = ("em", "f1", "f1_plain", "bertscore", "accuracy", "macro_f1", "option_mrr")
"""Metrics that need answers of a model or from a file."""

SHARES = frozenset(METRICS) - {"tokens"}
"""Metrics between 0 and 1, printed in percent."""
