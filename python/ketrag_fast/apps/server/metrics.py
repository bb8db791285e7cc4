"""Prometheus metrics. Workers share them through files in a folder of the parent process."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

disable_created_metrics()  # type: ignore[no-untyped-call] # doubles the series for no use
RETRIEVE = "/v1/retrieve"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one worker. Labels are routes and states, never client input."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self.front: Callable[[], Sequence[int]] = lambda: ()
        """Returns what the core's front of this process has counted."""
        self.requests = Counter(
            "ketrag_requests", "Requests by route and status", ("route", "status"), registry=own
        )
        self.seconds = Histogram(
            "ketrag_request_seconds",
            "Seconds from the head of a request to the end of its reply",
            ("route",),
            buckets=_SECONDS,
            registry=own,
        )
        self.batches = Histogram(
            "ketrag_batch_questions", "Questions per batch", buckets=_SIZES, registry=own
        )
        self.refused = Counter("ketrag_refused", "Requests refused because the queue was full", registry=own)
        self.cache = Counter("ketrag_cached_replies", "Replies from the cache", registry=own)
        self.waiting = Gauge(
            "ketrag_waiting_questions",
            "Questions in the queue",
            registry=own,
            multiprocess_mode="livesum",
        )
        self.generation = Gauge(
            "ketrag_generation",
            "Current generation of an index",
            ("index",),
            registry=own,
            multiprocess_mode="livemax",
        )

    def text(self) -> bytes:
        """Return the metrics of all workers in Prometheus's format."""
        found: Iterable[Metric] = self.registry.collect()
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            found = registry.collect()
        return generate_latest(_Merged(self.registry, found, self._front_counts()))

    def _front_counts(self) -> list[int]:
        """Return the sums of what the core's fronts of all workers have counted."""
        rows = [self.front()]
        if FOLDER in os.environ:
            rows = [_stored_counts(file) for file in Path(os.environ[FOLDER]).glob("front-*")]
        return [sum(column) for column in zip(*(row for row in rows if row), strict=True)]


class _Merged:
    """The metrics of the registries together with the counts of the core's fronts."""

    def __init__(self, own: CollectorRegistry, found: Iterable[Metric], counts: Sequence[int]) -> None:
        self._families = {one.name: Metric(one.name, one.documentation, one.type) for one in own.collect()}
        self._families |= {one.name: one for one in found}
        if counts:
            self._add(counts)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return [family for family in self._families.values() if family.samples]

    def _add(self, counts: Sequence[int]) -> None:
        """Add `_core.Front.counts`."""
        answered, refused, cached, micros, questions, *buckets = counts
        route = {"route": RETRIEVE}
        for name, labels, count in (
            ("ketrag_requests", {**route, "status": "200"}, answered),
            ("ketrag_requests", {**route, "status": "429"}, refused),
            ("ketrag_refused", {}, refused),
            ("ketrag_cached_replies", {}, cached),
        ):
            self._increase(name, f"{name}_total", labels, count)
        times = len(_SECONDS) + 1
        self._add_histogram("ketrag_request_seconds", route, _SECONDS, buckets[:times], micros / 1e6)
        self._add_histogram("ketrag_batch_questions", {}, _SIZES, buckets[times:], questions)

    def _add_histogram(
        self, name: str, labels: dict[str, str], bounds: Sequence[float], counts: Sequence[int], total: float
    ) -> None:
        for bound, count in zip((*bounds, float("inf")), accumulate(counts), strict=True):
            bucket = {**labels, "le": floatToGoString(float(bound))}  # type: ignore[no-untyped-call]
            self._increase(name, f"{name}_bucket", bucket, count, keep=any(counts))
        self._increase(name, f"{name}_count", labels, sum(counts))
        self._increase(name, f"{name}_sum", labels, total)

    def _increase(
        self, family: str, name: str, labels: dict[str, str], count: float, *, keep: bool = False
    ) -> None:
        """Add to a sample. A sample that does not exist is created for a count above 0, or to `keep` it."""
        samples = self._families[family].samples
        for at, sample in enumerate(samples):
            if sample.name == name and sample.labels == labels:
                samples[at] = sample._replace(value=sample.value + count)
                return
        if count or keep:
            self._families[family].add_sample(name, labels, count)


def counts_file() -> str | None:
    """Return the file in which the front of this worker counts; None if there is one worker."""
    where = os.environ.get(FOLDER)
    return None if where is None else str(Path(where) / f"front-{os.getpid()}")


def _stored_counts(file: Path) -> list[int]:
    stored = file.read_bytes()
    return list(struct.unpack(f"={len(stored) // 8}Q", stored))


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder that workers share; the parent creates it before they start."""
    return tempfile.TemporaryDirectory(prefix="ketrag-metrics-")


def mark_dead(process: int, where: str) -> None:
    """Remove the gauges of a worker that has ended."""
    multiprocess.mark_process_dead(process, where)  # type: ignore[no-untyped-call]
