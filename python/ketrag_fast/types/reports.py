"""Reports of builds: counts, times, tokens and spending."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ketrag_fast.records import dataclass, field
from ketrag_fast.types.documents import Failure, Record


@dataclass(frozen=True, slots=True)
class StageReport(Record):
    """How a stage was built: `how` is "ran", "resumed" (an interrupted build) or "reused" (the last build).

    Examples:
        >>> {stage.how for stage in index.report.stages}
        {'ran'}
    """

    name: str
    how: str
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """Resources that one build used. Tokens are counted by the models.

    Only calls made in this build count, not cached vectors and replies. `memory` is the peak memory
    of the whole process in bytes, if the system reports it.

    Examples:
        >>> index.report.usage.documents, index.report.usage.calls
        (3, 0)
    """

    documents: int = 0
    characters: int = 0
    chunks: int = 0
    core_chunks: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    llm_seconds: float = 0.0
    embedding_texts: int = 0
    embedding_tokens: int = 0
    memory: int | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Usage:
        """Convert the output of `to_json` back. Raises TypeError for an unknown entry."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build. `changed` is False when there was nothing to do.

    `skipped` are files that were skipped, with the reason: no reader supports the format ("format"), a
    program generated them ("generated"), or parts of them are hidden ("hidden"). `extraction` counts the
    core chunks: read, already read (`hits`), failed, pending, and the reason if it `stopped`; None without
    extraction.

    Examples:
        >>> report = index.report
        >>> report.generation, report.changed, report.added, len(report.failures)
        (1, True, 3, 0)
    """

    generation: int
    changed: bool
    digest: str
    documents: int
    added: int = 0
    removed: int = 0
    updated: int = 0
    stages: tuple[StageReport, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[Failure, ...] = ()
    settings_changed: tuple[tuple[str, Any, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    extraction: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "schema": "ketrag/index/1",
            "generation": self.generation,
            "changed": self.changed,
            "digest": self.digest,
            "documents": {
                "total": self.documents,
                "added": self.added,
                "removed": self.removed,
                "updated": self.updated,
            },
            "stages": [stage.to_json() for stage in self.stages],
            "failures": [failure.to_json() for failure in self.failures],
            "skipped": [file.to_json() for file in self.skipped],
            "settings_changed": [{"name": n, "old": o, "new": w} for n, o, w in self.settings_changed],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "usage": self.usage.to_json(),
            "extraction": dict(self.extraction) if self.extraction is not None else None,
        }
