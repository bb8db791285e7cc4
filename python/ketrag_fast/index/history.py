"""The past builds of an index, and the running build."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.layout import Layout

_WRONG = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions raised when an altered report lacks an entry or an entry has the wrong type."""


@dataclass(frozen=True, slots=True)
class PastBuild:
    """A build that changed the index, or had failures.

    Attributes:
        started: time in UTC, ISO 8601.
        seconds: duration of the build.
        generation: the current generation after the build.
        documents, added, updated, removed: the number of documents after the build, and of changed documents.
        ran, reused: names of the stages that ran, and of the stages whose results were reused.
        calls, tokens_in, tokens_out: number of LLM calls and their tokens.
        failures: documents and chunks that could not be read.
        settings: names of the settings that had changed.
    """

    started: str
    seconds: float
    generation: int
    documents: int
    added: int
    updated: int
    removed: int
    ran: tuple[str, ...]
    reused: tuple[str, ...]
    calls: int
    tokens_in: int
    tokens_out: int
    failures: int
    settings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `GET /v1/builds`."""
        return asdict(self)


def past_builds(folder: Path, most: int) -> list[PastBuild]:
    """Return at most `most` builds, newest first. Altered rows are skipped."""
    found = []
    for started, seconds, generation, report in reading.runs(Layout(folder), most):
        try:
            found.append(_past_build(started, seconds, generation, json.loads(report)))
        except _WRONG:
            continue
    return found


def _past_build(started: str, seconds: float, generation: int, report: Any) -> PastBuild:
    documents, usage = report["documents"], report["usage"]
    stages = [(str(stage["name"]), stage["how"]) for stage in report["stages"]]
    return PastBuild(
        started=started,
        seconds=seconds,
        generation=generation,
        documents=int(documents["total"]),
        added=int(documents["added"]),
        updated=int(documents["updated"]),
        removed=int(documents["removed"]),
        ran=tuple(name for name, how in stages if how != "reused"),
        reused=tuple(name for name, how in stages if how == "reused"),
        calls=int(usage["calls"]),
        tokens_in=int(usage["tokens_in"]),
        tokens_out=int(usage["tokens_out"]),
        failures=int(report["failures"]),
        settings=tuple(str(row["name"]) for row in report["settings_changed"]),
    )
