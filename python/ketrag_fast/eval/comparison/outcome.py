"""Outcome of one configuration: its build, price, graph and scores, or its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import Any

from ketrag_fast.eval.prices import Bill
from ketrag_fast.eval.question import Question
from ketrag_fast.eval.results import Result
from ketrag_fast.eval.rows import ResultRow
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import Arrays, read_strings

COUNTED = ("documents", "chunks", "subchunks", "keywords", "core_chunks", "entities", "relations")
"""The statistics of an index that a report prints."""


@dataclass(frozen=True, slots=True)
class BuildCost:
    """Cost of a build. `measured` is False if vectors were shared with an earlier build of the report:
    seconds and embedding tokens are then those of a separate build, at the rate measured there.
    """

    seconds: float
    stages: Mapping[str, float]
    calls: int
    tokens_in: int
    tokens_out: int
    embedding_tokens: int
    bill: Bill
    bytes: int
    memory: int | None
    measured: bool
    spent_seconds: float
    """Wall-clock time in this run: close to 0 if everything was cached."""

    def to_json(self) -> dict[str, Any]:
        """Return the cost for a report."""
        row = {"usd" if name == "bill" else name: getattr(self, name) for name in self.__slots__}
        return {**row, "usd": self.bill.to_json()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One configuration. With an `error` the other fields are empty."""

    name: str
    settings: Mapping[str, Any]
    varied: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    hint: str | None = None
    cost: BuildCost | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    digest: str | None = None
    failures: int = 0
    warnings: tuple[str, ...] = ()
    rows: tuple[ResultRow, ...] = ()
    results: tuple[Result, ...] = ()
    graph: Graph | None = None

    @property
    def has_graph(self) -> bool:
        """Whether its core chunks were to be extracted from."""
        return self.error is None and self.settings.get("llm", "none") != "none"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome without the results of single questions."""
        plain = ("error", "hint", "digest", "failures")
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "varied": dict(self.varied),
            "status": "ok" if self.error is None else "not run",
            **{name: getattr(self, name) for name in plain},
            "cost": None if self.cost is None else self.cost.to_json(),
            "counts": dict(self.counts),
            "warnings": list(self.warnings),
            "rows": [row.as_dict() for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one configuration to one question, at one mode and budget."""

    name: str
    mode: str
    budget: int
    result: Result

    @property
    def found(self) -> bool | None:
        """Whether the answer is in the context; without an answer, whether all gold passages are."""
        if self.result.covered is not None and not self.result.yes_no:
            return self.result.covered
        return self.result.all_gold

    def to_json(self) -> dict[str, Any]:
        """Return the fields in which configurations differ."""
        kept = ("covered", "recall", "all_gold", "rank", "tokens", "answer", "em", "f1")
        values = {name: getattr(self.result, name) for name in kept}
        return {
            "name": self.name,
            "mode": self.mode,
            "budget": self.budget,
            "has_it": self.found,
            **values,
            "found": list(self.result.found[:10]),
        }


@dataclass(frozen=True, slots=True)
class Divided:
    """A question on which configurations differ."""

    question: Question
    verdicts: tuple[Verdict, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the question for a report."""
        return {
            "query_id": self.question.id,
            "question": self.question.text,
            "gold_answers": list(self.question.answers),
            "gold_documents": sorted(self.question.gold),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report. `about` describes machine, versions and data; `kind` is builds, systems or sweep."""

    kind: str
    about: Mapping[str, Any]
    questions: tuple[Question, ...]
    outcomes: tuple[Outcome, ...]
    overlaps: tuple[Overlap, ...] = ()
    divided: tuple[Divided, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> list[Outcome]:
        """The configurations that ran."""
        return [outcome for outcome in self.outcomes if outcome.error is None]

    def to_json(self) -> dict[str, Any]:
        """Return the report as `ketrag bench ... --json` prints it."""
        return {
            "schema": "ketrag/bench/1",
            "kind": self.kind,
            **self.about,
            "questions": len(self.questions),
            "configurations": [outcome.to_json() for outcome in self.outcomes],
            "overlaps": [overlap.to_json() for overlap in self.overlaps],
            "divided": [entry.to_json() for entry in self.divided],
            "notes": list(self.notes),
        }


def split_questions(questions: Sequence[Question], outcomes: Sequence[Outcome]) -> list[Divided]:
    """Return the questions that some configurations cover and others do not, at the largest common budget.

    Each configuration is represented by its first mode; without answers the gold passages decide.
    """
    speaking = [outcome for outcome in outcomes if outcome.results]
    if len(speaking) < 2:
        return []
    common = set.intersection(*({r.budget for r in outcome.results} for outcome in speaking))
    found = []
    per_name: list[tuple[str, dict[str, Result]]] = []
    for outcome in speaking:
        first = outcome.results[0].mode
        own = [r for r in outcome.results if r.mode == first]
        budget = max(common) if common else own[0].budget
        per_name.append((outcome.name, {r.question: r for r in own if r.budget == budget}))
    for question in questions:
        given = [(name, results.get(question.id)) for name, results in per_name]
        verdicts = [Verdict(name, r.mode, r.budget, r) for name, r in given if r is not None]
        if len({verdict.found for verdict in verdicts} - {None}) > 1:
            found.append(Divided(question, tuple(verdicts)))
    return found


@dataclass(frozen=True, slots=True)
class Graph:
    """Names and pairs of a graph of entities; names are in upper case, pairs are unordered."""

    entities: frozenset[str]
    relations: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Shared:
    """Two sets: the number of items in A alone, in both, in B alone."""

    only_a: int
    both: int
    only_b: int

    @property
    def jaccard(self) -> float | None:
        """Jaccard index; None if both sets are empty."""
        every = self.only_a + self.both + self.only_b
        return self.both / every if every else None

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the share."""
        return {**asdict(self), "jaccard": self.jaccard}


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of the graphs of two configurations."""

    a: str
    b: str
    entities: Shared
    relations: Shared

    def to_json(self) -> dict[str, Any]:
        """Return the overlap for a report."""
        shared = {"entities": self.entities.to_json(), "relations": self.relations.to_json()}
        return {"a": self.a, "b": self.b, **shared}


def graph_of(stages: Mapping[str, Arrays]) -> Graph | None:
    """Return the first graph of entities that a stage of an index declares; None if the index has none."""
    for stage in registry().stages:
        arrays = stages.get(stage.name)
        if stage.entity_graph is not None and arrays is not None:
            own = stage.entity_graph
            names = read_strings(arrays, own.name)
            pairs = zip(arrays[own.source].tolist(), arrays[own.target].tolist(), strict=True)
            linked = (sorted((names[a], names[b])) for a, b in pairs)
            return Graph(frozenset(names), frozenset((a, b) for a, b in linked))
    return None


def overlaps(graphs: Sequence[tuple[str, Graph]]) -> list[Overlap]:
    """Return the overlap of every pair, in the given order."""
    return [
        Overlap(a, b, _overlap(one.entities, two.entities), _overlap(one.relations, two.relations))
        for place, (a, one) in enumerate(graphs)
        for b, two in graphs[place + 1 :]
    ]


def _overlap(a: Set[Any], b: Set[Any]) -> Shared:
    both = len(a & b)
    return Shared(len(a) - both, both, len(b) - both)
