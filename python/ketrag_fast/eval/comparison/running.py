"""Builds and scores configurations one after another, sharing what can be shared."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback
from ketrag_fast.building.file_reading import read_sources
from ketrag_fast.errors import (
    Cancelled,
    DocumentError,
    IndexLocked,
    KetragError,
    ReadOnly,
    StorageFailed,
    StorageFull,
)
from ketrag_fast.eval import Collected, DataSet, collect
from ketrag_fast.eval.comparison.configurations import Configuration, units_of
from ketrag_fast.eval.comparison.outcome import COUNTED, BuildCost, Outcome
from ketrag_fast.eval.comparison.overlap import graph_of
from ketrag_fast.eval.cost.embedded import Rate, embedded_bytes, rate_of
from ketrag_fast.eval.cost.prices import Prices, bill
from ketrag_fast.eval.run import Answerer
from ketrag_fast.index import Index
from ketrag_fast.systems.planning import embedding_stages
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
    `rebuild_first` is for a folder that may hold an index of other units: its stages are rebuilt, its vectors
    and replies reused. `graphs` keeps each entity graph to compare them.
    """

    dataset: DataSet
    sources: Sequence[str | Path | Document]
    folder: Path
    common: Settings
    budgets: Sequence[int]
    modes: Sequence[str] = ()
    apart: bool = True
    rebuild_first: bool = False
    graphs: bool = True
    prices: Prices = field(default_factory=Prices)
    progress: Callback | None = None
    answers: Answers | None = None
    tell: Callable[[str], None] = lambda _: None
    _before: tuple[Any, ...] | None = None
    _rates: dict[str, Rate] = field(default_factory=dict)
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
                whole = self.common.having(**configuration.settings)
                told = whole.given
                found[place] = Outcome(
                    configuration.name, told, configuration.varied, error.message, error.hint
                )
        return [found[place] for place in range(len(configurations))]

    def one(self, configuration: Configuration) -> Outcome:
        """Build and score one configuration. Raises what the build raises."""
        settings = configuration.to_build(self.common, self.modes)
        units = units_of(settings)
        path = self.folder / (_folder_name(configuration.name) if self.apart else "shared")
        first = self.apart or self._before is None
        rebuild = self.rebuild_first if first else self._before != units
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
            stages = index.inspect.arrays()
            cost = self._cost(report, stats, settings, stages)
            return Outcome(
                configuration.name,
                _public_settings(settings),
                configuration.varied,
                cost=cost,
                counts={name: int(stats["counts"].get(name, 0)) for name in COUNTED},
                digest=report.digest,
                failures=len(stats["failures"]) + self._unread,
                warnings=report.warnings,
                rows=tuple(found.rows()),
                results=found.results,
                graph=graph_of(stages) if self.graphs else None,
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

    def _cost(
        self,
        report: BuildReport,
        stats: Mapping[str, Any],
        settings: Settings,
        stages: Mapping[str, Mapping[str, Any]],
    ) -> BuildCost:
        usage = usage_alone(report)
        seconds = {stage.name: stage.seconds for stage in report.stages}
        # Reading, checking and publishing happen in every build; the stages may have run in an earlier one.
        around = max(report.seconds - sum(s.seconds for s in report.stages if s.how == "ran"), 0.0)
        measured = True
        size = embedded_bytes(stages, stages.keys())
        embedding = embedding_stages()
        took = sum(seconds[name] for name in embedding & seconds.keys())
        ran = any(s.name in embedding and s.how == "ran" for s in report.stages)
        if settings.embedder != "builtin" and embedding & seconds.keys():
            rate = self._rates.get(settings.embedder)
            if rate is None and ran and usage.embedding_tokens:
                self._rates[settings.embedder] = rate_of(usage.embedding_tokens, took, size)
            elif rate is not None and not self.apart:
                measured = False
                tokens = max(usage.embedding_tokens, rate.tokens(size))
                seconds["vectors"] += max(tokens * rate.seconds_per_token - took, 0.0)
                usage = replace(usage, embedding_tokens=tokens)
        return BuildCost(
            seconds=sum(seconds.values()) + around + self._reading,
            stages=seconds,
            calls=usage.calls,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            embedding_tokens=usage.embedding_tokens,
            bill=bill(usage, self.prices, settings.llm, settings.embedder),
            bytes=int(stats["bytes"]),
            memory=usage.memory,
            measured=measured,
            spent_seconds=report.seconds,
        )


def usage_alone(report: BuildReport) -> Usage:
    """Return the cost of the model replies in this index, whichever build requested them."""
    whole = (report.extraction or {}).get("whole")
    if not whole:
        return report.usage
    counts = {name: int(whole[name]) for name in ("calls", "tokens_in", "tokens_out")}
    return replace(report.usage, **counts, llm_seconds=float(whole["seconds"]))


def _folder_name(name: str) -> str:
    """Return a readable folder name that is different for different names of configurations."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40] or "build"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _public_settings(settings: Settings) -> dict[str, Any]:
    """Return the chosen settings without those that reveal paths of keys or files."""
    return dict(settings.given)
