"""What is counted, for Prometheus. Workers add up through files in a folder of their parent's."""

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

disable_created_metrics()  # type: ignore[no-untyped-call] # a series for each series, which nobody reads
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The counters of one worker. Labels are routes and states, never what a client sent."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self.requests = Counter(
            "ketrag_requests", "Requests by route and status", ("route", "status"), registry=own
        )
        self.seconds = Histogram(
            "ketrag_request_seconds",
            "From the request's head to the reply's end",
            ("route",),
            buckets=_SECONDS,
            registry=own,
        )
        self.batches = Histogram(
            "ketrag_batch_questions", "Questions put to the core together", buckets=_SIZES, registry=own
        )
        self.refused = Counter("ketrag_refused", "Requests refused because the queue was full", registry=own)
        self.cache = Counter("ketrag_cached_replies", "Replies that were at hand", registry=own)
        self.waiting = Gauge(
            "ketrag_waiting_questions",
            "Questions that no thread has taken",
            registry=own,
            multiprocess_mode="livesum",
        )
        self.generation = Gauge(
            "ketrag_generation",
            "The generation that answers",
            ("index",),
            registry=own,
            multiprocess_mode="livemax",
        )

    def text(self) -> bytes:
        """As Prometheus reads it, of all workers."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def folder() -> tempfile.TemporaryDirectory[str]:
    """Where workers count together; made by their parent before they start."""
    return tempfile.TemporaryDirectory(prefix="ketrag-metrics-")


def mark_dead(process: int, where: str) -> None:
    """A worker is gone: what it had waiting counts no more."""
    multiprocess.mark_process_dead(process, where)  # type: ignore[no-untyped-call]
