"""Prometheus metrics. Workers share them through files in a folder of the parent process."""

from __future__ import annotations

import os
import tempfile

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)

disable_created_metrics()  # type: ignore[no-untyped-call] # doubles the series for no use
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one worker. Labels are routes and states, never client input."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
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
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder that workers share; the parent creates it before they start."""
    return tempfile.TemporaryDirectory(prefix="ketrag-metrics-")


def mark_dead(process: int, where: str) -> None:
    """Remove the gauges of a worker that has ended."""
    multiprocess.mark_process_dead(process, where)  # type: ignore[no-untyped-call]
