"""Builds and scores configurations one after another, and reports on them."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback
from ketrag_fast.building.sources import read_sources
from ketrag_fast.errors import (
    Cancelled,
    ConfigError,
    DocumentError,
    IndexLocked,
    KetragError,
    ReadOnly,
    StorageFailed,
    StorageFull,
)
from ketrag_fast.eval import Collected, DataSet, collect
from ketrag_fast.eval.comparison.configurations import Configuration, order, units_of
from ketrag_fast.eval.comparison.report import COUNTED, BuildCost, Outcome, Report, split_questions
from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.prices import Prices, bill
from ketrag_fast.eval.run import Answerer
from ketrag_fast.eval.saved import describe
from ketrag_fast.index import Index
from ketrag_fast.models.cross_encoders import is_extractive
from ketrag_fast.models.embedders.registry import BUILTIN
from ketrag_fast.models.llms.registry import is_model
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.systems.planning import embedding_stages
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import BuildReport, Document, Usage

_ENDS = (Cancelled, DocumentError, IndexLocked, ReadOnly, StorageFailed, StorageFull)
"""Errors that affect every configuration; any other error costs one configuration."""

Answers = Callable[[Index], Answerer]
"""Returns a function that answers questions from an open index."""


@dataclass(slots=True)
class Bench:
    """Options that all configurations share.

    `folder` contains the indexes. `apart` builds each in a separate folder, so that nothing is shared and
    everything is measured; otherwise one folder serves all, and vectors and replies are computed once.
    """

    dataset: DataSet
    sources: Sequence[str | Path | Document]
    folder: Path
    common: Settings
    budgets: Sequence[int]
    modes: Sequence[str] = ()
    apart: bool = True
    prices: Prices = field(default_factory=Prices)
    progress: Callback | None = None
    answers: Answers | None = None
    tell: Callable[[str], None] = lambda _: None
    _before: tuple[Any, ...] | None = None
    _unread: int = 0
    _reading: float = 0.0

    def run(self, configurations: Sequence[Configuration], order: Sequence[int]) -> list[Outcome]:
        """Return an outcome for each configuration, in their order; `order` is the order of the work."""
        found: dict[int, Outcome] = {}
        for step, place in enumerate(order, 1):
            configuration = configurations[place]
            self.tell(f"[{step}/{len(order)}] {configuration.name}")
            try:
                found[place] = self.one(configuration)
            except _ENDS:
                raise
            except KetragError as error:
                self.tell(f"  not run: {error.message}")
                settings = self.common.having(**configuration.settings).given
                found[place] = Outcome(
                    configuration.name, settings, configuration.varied, error.message, error.hint
                )
        return [found[place] for place in range(len(configurations))]

    def one(self, configuration: Configuration) -> Outcome:
        """Build and score one configuration. Raises what the build raises."""
        settings = configuration.to_build(self.common, self.modes)
        units = units_of(settings)
        path = self.folder / (_folder_name(configuration.name) if self.apart else "shared")
        first = self.apart or self._before is None
        rebuild = not first and self._before != units
        sources = list(self.sources) if self.apart else self._read_once(settings) if first else []
        if not self.apart and "verify" not in settings.given:
            settings = settings.having(verify="sizes")  # this process has just written and checked it
        with Index.build(
            sources, path, settings=settings, progress=self.progress, replace=first, rebuild=rebuild
        ) as index:
            self._before = units
            report = index.report
            assert report is not None  # noqa: S101 - it was just built
            stats = index.stats()
            found = self._scores(index, configuration)
            return Outcome(
                configuration.name,
                dict(settings.given),
                configuration.varied,
                cost=self._cost(report, int(stats["bytes"]), settings, first=first),
                counts={name: int(stats["counts"].get(name, 0)) for name in COUNTED},
                digest=report.digest,
                failures=len(stats["failures"]) + self._unread,
                warnings=report.warnings,
                rows=tuple(found.rows()),
                results=found.results,
            )

    def _read_once(self, settings: Settings) -> list[Document]:
        """Return the sources; builds after the first take the documents from the index."""
        begin = time.monotonic()
        items = list(read_sources(self.sources, settings))
        documents = [item for item in items if isinstance(item, Document)]
        self._unread = len(items) - len(documents)
        self._reading = time.monotonic() - begin
        return documents

    def _scores(self, index: Index, configuration: Configuration) -> Collected:
        settings = configuration.resolved(self.common)
        modes = self.modes or [settings.mode]
        budgets = [settings.budget] if "budget" in configuration.settings else self.budgets
        answer = self.answers(index) if self.answers is not None else None
        return collect(index, self.dataset, modes, budgets, top=settings.top, answer=answer)

    def _cost(self, report: BuildReport, size: int, settings: Settings, *, first: bool) -> BuildCost:
        usage = usage_alone(report)
        seconds = {stage.name: stage.seconds for stage in report.stages}
        # Reading, checking and publishing happen in every build; the stages may have run in an earlier one.
        around = max(report.seconds - sum(s.seconds for s in report.stages if s.how == "ran"), 0.0)
        return BuildCost(
            seconds=sum(seconds.values()) + around + self._reading,
            stages=seconds,
            calls=usage.calls,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            embedding_tokens=usage.embedding_tokens,
            bill=bill(usage, self.prices, settings.llm, settings.embedder),
            bytes=size,
            memory=usage.memory,
            measured=first or settings.embedder == BUILTIN or not embedding_stages() & seconds.keys(),
            spent_seconds=report.seconds,
        )


def usage_alone(report: BuildReport) -> Usage:
    """Return the cost of all model replies in an index, including those that earlier builds requested."""
    whole = (report.extraction or {}).get("whole")
    if not whole:
        return report.usage
    counts = {name: int(whole[name]) for name in ("calls", "tokens_in", "tokens_out")}
    return replace(report.usage, **counts, llm_seconds=float(whole["seconds"]))


def _folder_name(name: str) -> str:
    """Return a readable folder name that is different for different names of configurations."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40] or "build"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def parse_systems(text: str) -> list[str]:
    """Parse `all` or a comma-separated list."""
    if text.strip() == "all":
        return list(registry().presets)
    return [name.strip() for name in text.split(",") if name.strip()]


def report_of(kind: str, bench: Bench, configurations: Sequence[Configuration]) -> Report:
    """Run all configurations and return the report. `kind` is builds, systems or sweep."""
    places = list(range(len(configurations))) if bench.apart else order(configurations, bench.common)
    outcomes = bench.run(configurations, places)
    about = describe(bench.dataset, {})
    about.pop("index")
    about["documents"] = max((outcome.counts.get("documents", 0) for outcome in outcomes), default=0)
    about["prices"] = bench.prices.to_json()
    return Report(
        kind,
        about,
        bench.dataset.questions,
        tuple(outcomes),
        tuple(split_questions(bench.dataset.questions, outcomes)),
        tuple(_notes(bench, outcomes)),
    )


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
        notes.append("EM and F1: not run, as no answers were judged")
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
