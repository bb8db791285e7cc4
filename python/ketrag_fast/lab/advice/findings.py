"""Conclusions from a trial: the mode, the budget, the chunk size, and whether a model helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ketrag_fast.lab.advice.probes import KINDS, Kind
from ketrag_fast.lab.advice.trial import BUDGETS, FIRST, UNIT_BUDGET, Trial
from ketrag_fast.lab.eval.metrics import bootstrap_interval
from ketrag_fast.lab.eval.paired import PairedDifference, compare_paired

CANNOT_TELL: Final = "cannot tell"
ENOUGH: Final = 30
"""Probes below which nothing is concluded."""
_NEAR = 0.02  # of the largest share: the smallest budget that comes so near is recommended
_FEW_LINKS = 0.1  # share of documents with a rare name in common with another, below which hops matter little


@dataclass(frozen=True, slots=True)
class Conclusion:
    """An answer with its reason; `value` is None where it cannot be told."""

    question: str
    value: str | None
    reason: str

    @property
    def answer(self) -> str:
        """The value, or the words that it cannot be told."""
        return self.value if self.value is not None else CANNOT_TELL


@dataclass(frozen=True, slots=True)
class ProbeShare:
    """A share of probes answered, with its 95 % interval (bootstrap over probes)."""

    kind: str
    mode: str
    n: int
    share: float
    ci95: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Advice:
    """The findings, and the figures that they rest on."""

    findings: tuple[Conclusion, ...]
    shares: tuple[ProbeShare, ...]
    budgets: tuple[tuple[str, int, float], ...]
    trial: Trial

    def to_json(self) -> dict[str, Any]:
        """Return the advice as `ketrag bench advise --json` prints it."""
        probes = self.trial.probes
        return {
            "findings": [{**asdict(one), "answer": one.answer} for one in self.findings],
            "shares": [asdict(share) for share in self.shares],
            "budgets": [
                {"mode": mode, "budget": budget, "share": share} for mode, budget, share in self.budgets
            ],
            "documents": {"total": probes.total, "looked_at": probes.looked_at, "linked": probes.joined},
            "model": self.trial.model,
        }


def advise(trial: Trial) -> Advice:
    """Return the conclusions from a trial."""
    found = (_hops(trial), _mode(trial), _budget(trial), _units(trial), _model(trial))
    budgets = tuple(
        (mode, budget, _mean(trial.held[mode][budget]))
        for mode in trial.modes
        for budget in BUDGETS
        if trial.held[mode][budget]
    )
    return Advice(found, tuple(_shares(trial)), budgets, trial)


def _shares(trial: Trial) -> Iterator[ProbeShare]:
    for kind in KINDS:
        for mode, values in trial.found[kind].items():
            interval = bootstrap_interval(values)
            if interval is not None:
                yield ProbeShare(kind, mode, len(values), _mean(values), interval)


def _difference(trial: Trial, kind: str, a: str, b: str) -> PairedDifference | None:
    rows = trial.found[kind]  # type: ignore[index]
    compared = compare_paired(rows[a], rows[b])
    return compared if compared is not None and compared.n >= ENOUGH else None


def _hops(trial: Trial) -> Conclusion:
    question = "Do questions need hops?"
    share = _linked_share(trial)
    links = f"{share:.0%} of the documents share a rare name with another"
    compared = _difference(trial, "linked", "bm25", "walk")
    if compared is None:
        return Conclusion(question, None, f"{links}; {_too_few(trial, 'linked')}")
    figures = f"where a name leads to the answer, walk finds {compared.b:.0%}, bm25 {compared.a:.0%}"
    if share < _FEW_LINKS:
        return Conclusion(question, "rarely", f"only {links}; {figures}")
    if compared.ci95[0] > 0:
        return Conclusion(question, "some may", f"{links}; {figures}")
    return Conclusion(question, None, f"{links}; {figures}: the difference may be chance")


def _too_few(trial: Trial, kind: Kind) -> str:
    """Return how many questions of a kind could be made, when these are too few to tell."""
    count = len(trial.probes.of(kind))
    made = f"{count} {kind} question{'' if count == 1 else 's'}"
    return f"only {made} could be made, and {ENOUGH} are needed"


def _linked_share(trial: Trial) -> float:
    return trial.probes.joined / trial.probes.looked_at


def _mode(trial: Trial) -> Conclusion:
    question = "Which mode?"
    direct = _difference(trial, "direct", "bm25", "walk")
    linked = _difference(trial, "linked", "bm25", "walk")
    if direct is None:
        return Conclusion(question, None, _too_few(trial, "direct"))
    said = f"direct questions: walk {direct.b:.0%}, bm25 {direct.a:.0%} in the first {FIRST}"
    if linked is not None:
        said += f"; through a name: walk {linked.b:.0%}, bm25 {linked.a:.0%}"
    gains = linked is not None and linked.ci95[0] > 0 and _linked_share(trial) >= _FEW_LINKS
    if direct.ci95[1] < 0:
        return Conclusion(question, "bm25", f"{said}. Choose walk for questions that lead through a name")
    if direct.ci95[0] > 0 or gains:
        return Conclusion(question, "walk", said)
    return Conclusion(question, None, f"{said}: the difference may be chance")


def _best(trial: Trial) -> str:
    chosen = _mode(trial).value
    return chosen if chosen is not None else "bm25"


def _budget(trial: Trial) -> Conclusion:
    question = "Which budget?"
    mode = _best(trial)
    rows = trial.held[mode]
    if len(rows[BUDGETS[0]]) < ENOUGH:
        return Conclusion(question, None, _too_few(trial, "direct"))
    shares = {budget: _mean(rows[budget]) for budget in BUDGETS}
    largest = max(shares.values())
    chosen = next(budget for budget in BUDGETS if shares[budget] >= largest - _NEAR)
    said = ", ".join(f"{budget:,}: {share:.0%}" for budget, share in shares.items())
    return Conclusion(question, f"{chosen:,} tokens", f"found in the context of {mode} by its tokens: {said}")


def _units(trial: Trial) -> Conclusion:
    question = "Which size of chunks?"
    if not trial.units:
        return Conclusion(
            question,
            f"{trial.chunk_tokens:,} tokens",
            f"half of the documents have at most {trial.median_tokens:,} tokens: other sizes change little",
        )
    own = trial.held["bm25"][UNIT_BUDGET]
    if len(own) < ENOUGH:
        return Conclusion(question, None, _too_few(trial, "direct"))
    best, gain = trial.chunk_tokens, 0.0
    said = [f"{trial.chunk_tokens:,} tokens: {_mean(own):.0%}"]
    for other in trial.units:
        said.append(f"{other.tokens:,}: {_mean(other.found):.0%}")
        compared = compare_paired(own, other.found)
        if compared is not None and compared.ci95[0] > 0 and compared.difference > gain:
            best, gain = other.tokens, compared.difference
    reason = f"found in {UNIT_BUDGET:,} tokens of bm25, chunks of {', '.join(said)}"
    return Conclusion(question, f"{best:,} tokens", reason if gain else f"{reason}: none is better")


def _model(trial: Trial) -> Conclusion:
    question = "Does an embedding model help?"
    without = _best(trial)
    direct = trial.found["direct"]
    if len(direct["bm25"]) < ENOUGH:
        return Conclusion(question, None, _too_few(trial, "direct"))
    asked = [mode for mode in trial.modes if mode not in ("bm25", "walk")]
    if not asked:
        missed = 1 - max(_mean(direct["bm25"]), _mean(direct["walk"]))
        return Conclusion(
            question,
            None,
            f"{missed:.0%} of the direct questions are missed without one, the most that it can gain; "
            "to measure it: --embedder MODEL",
        )
    best = max(asked, key=lambda mode: _mean(direct[mode]))
    compared = compare_paired(direct[without], direct[best])
    assert compared is not None  # noqa: S101 - there are enough probes
    said = f"direct questions: {best} {compared.b:.0%}, {without} {compared.a:.0%} in the first {FIRST}"
    if compared.ci95[0] > 0:
        return Conclusion(question, f"yes, {best}", said)
    if compared.ci95[1] < 0:
        return Conclusion(question, "no", said)
    return Conclusion(question, None, f"{said}: the difference may be chance")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
