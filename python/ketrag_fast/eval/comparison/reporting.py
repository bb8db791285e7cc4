"""Runs configurations, compares their graphs and answers, and returns the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast.errors import ConfigError
from ketrag_fast.eval.comparison.configurations import Configuration
from ketrag_fast.eval.comparison.outcome import Outcome, Report, split_questions
from ketrag_fast.eval.comparison.overlap import overlaps
from ketrag_fast.eval.comparison.running import Bench
from ketrag_fast.eval.comparison.sweep import order
from ketrag_fast.eval.provenance import describe
from ketrag_fast.eval.question import Question
from ketrag_fast.eval.run import Answerer
from ketrag_fast.index import Index
from ketrag_fast.models.extractive import is_extractive
from ketrag_fast.models.llms.registry import is_model
from ketrag_fast.systems.registry import registry

if TYPE_CHECKING:
    from ketrag_fast.eval.comparison.running import Answers

_PAIRS = 12
"""Maximum number of configurations whose graphs are compared pairwise."""


def parse_systems(text: str) -> list[str]:
    """Parse `all` or a comma-separated list."""
    if text.strip() == "all":
        return list(registry().presets)
    return [name.strip() for name in text.split(",") if name.strip()]


def report_of(kind: str, bench: Bench, configurations: Sequence[Configuration]) -> Report:
    """Run all configurations and return the report. `kind` is builds, systems or sweep."""
    places = list(range(len(configurations))) if bench.apart else order(configurations, bench.common)
    bench.graphs = kind != "sweep"  # a sweep has many points with nested graphs
    outcomes = bench.run(configurations, places)
    graphs = [(outcome.name, outcome.graph) for outcome in outcomes if outcome.graph is not None]
    shown = [(name, graph) for name, graph in graphs if graph.entities][:_PAIRS]
    about = describe(bench.dataset, {})
    about.pop("index")
    about["documents"] = max((_documents(outcome) for outcome in outcomes), default=0)
    about["prices"] = bench.prices.to_json()
    return Report(
        kind,
        about,
        bench.dataset.questions,
        tuple(outcomes),
        tuple(overlaps(shown)),
        tuple(split_questions(bench.dataset.questions, outcomes)),
        tuple(_notes(bench, outcomes)),
    )


def _documents(outcome: Outcome) -> int:
    return outcome.counts.get("documents", 0)


def _notes(bench: Bench, outcomes: Sequence[Outcome]) -> list[str]:
    """Return caveats that a reader should know before trusting the table."""
    notes: list[str] = []
    unknown = sorted({_spending(o) for o in outcomes if o.cost is not None and o.cost.bill.total is None})
    if unknown:
        where = bench.prices.path or "no price table was given"
        notes.append(f"USD unknown: no price of {', '.join(unknown)} ({where})")
    if not any(question.answers for question in bench.dataset.questions):
        notes.append("coverage is absent: no question has an answer")
    elif not any(r.em is not None for o in outcomes for r in o.results):
        notes.append("EM, F1 and BERTScore: not run, as no answers were judged")
    lacking: dict[str, list[str]] = {}
    for outcome in outcomes:
        for row in outcome.rows:
            if row.reason is not None and outcome.name not in lacking.setdefault(row.reason, []):
                lacking[row.reason].append(outcome.name)
    notes += [f"not run by {', '.join(names)}: {reason}" for reason, names in lacking.items()]
    empty = [o.name for o in outcomes if o.has_graph and not o.counts["entities"] and o.counts["core_chunks"]]
    if empty:
        notes.append(f"no entity was found by {', '.join(empty)}")
    return notes


def _spending(outcome: Outcome) -> str:
    settings: dict[str, Any] = dict(outcome.settings)
    cost = outcome.cost
    named = str(settings.get("llm", "none")) if cost is not None and cost.bill.llm is None else ""
    return named or str(settings.get("embedder", "builtin"))


def answers_by(spec: str) -> Answers:
    """Return a function that answers with the model of a spec, without citation marks.

    Raises ConfigError if the spec names no model; a failure of the model costs one configuration.
    """
    if not is_extractive(spec) and not is_model(spec):
        raise ConfigError(f"--answer-with {spec}: not a language model")

    def answers(index: Index) -> Answerer:
        def answer(question: Question, mode: str, budget: int, context: str) -> str | None:
            if not context:
                return ""  # an empty context: a wrong answer, not a missing one
            return index.ask(question.text, llm=spec, mode=mode, budget=budget).plain

        return answer

    return answers
