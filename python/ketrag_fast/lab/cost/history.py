"""Records of an index's past builds, and the estimates made before them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import names
from ketrag_fast.errors import KetragError
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import begun_settings, stored_settings
from ketrag_fast.types import BuildReport, Usage

_OTHER_KIND: Final = frozenset({"seed", "core_ratio", "core_selection", "system", "entity_types"})
"""Build settings that change the amount of work, not the time per unit of work."""
_RUNS: Final = 50
"""Number of builds that are considered, the latest first."""


@dataclass(frozen=True, slots=True)
class Past:
    """A complete build of the same kind on this machine."""

    usage: Usage
    seconds: float
    stages: Mapping[str, float]
    bytes: Mapping[str, int]
    table_bytes: int
    """Bytes of the index's tables: documents, cached vectors and replies."""


def past(path: Path, settings: Mapping[str, Any]) -> Past | None:
    """Return the latest build at `path` that ran every stage with settings of the same kind; None without
    one.

    A build that reused its vectors is ignored, because it is faster than one that computes them.
    """
    found = _whole_builds(path, settings)
    most = max((_embedded_tokens(build) for build in found), default=0.0)
    return next((build for build in found if _embedded_tokens(build) >= 0.9 * most), None)


def contents(path: Path) -> frozenset[str]:
    """Return the hashes of the contents of an index's documents; empty without an index."""
    return reading.contents(Layout(path))


_UNCLEAR = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""Raised when altered JSON lacks an entry or has one of another type."""


def _embedded_tokens(build: Past) -> float:
    return build.usage.embedding_tokens / max(build.usage.characters, 1)


def _whole_builds(path: Path, settings: Mapping[str, Any]) -> list[Past]:
    """Return the complete builds, the latest first."""
    found = []
    tables = Layout(path).tables
    table_bytes = _size(tables)
    for text in reading.changing_runs(Layout(path), _RUNS):
        try:
            data = json.loads(text)
            stages = data["stages"]
            if any(stage["how"] != "ran" for stage in stages) or not _alike(data["settings"], settings):
                continue
            build = Past(
                Usage.from_json(data["usage"]),
                float(data["seconds"]),
                {stage["name"]: float(stage["seconds"]) for stage in stages},
                {stage["name"]: int(stage["bytes"]) for stage in stages},
                table_bytes,
            )
        except _UNCLEAR:
            continue  # an altered row: the other runs still count
        if build.usage.embedding_tokens or settings.get("embedder") == "builtin":
            found.append(build)
    return found


def _size(tables: Path) -> int:
    return sum(file.stat().st_size for file in tables.parent.glob(f"{tables.name}*") if file.is_file())


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    kept = [name for name in names("build") if name not in _OTHER_KIND]
    return all(one.get(name) == other.get(name) for name in kept)


def save_estimate(path: Path, estimate: Mapping[str, Any], *, create: bool) -> bool:
    """Store an estimate in the index's tables, to compare the build with it; return whether it was stored.

    Without `create` only in an existing index. Raises IndexLocked while a build runs, ReadOnly if the folder
    is not writable.
    """
    layout = Layout(path)
    if not layout.tables.is_file():
        if not create:
            return False
        layout.create()
    with builder_lock(layout):
        Tables(layout.tables).close()  # creates the tables that a build expects
        reading.keep_estimate(layout, json.dumps(dict(estimate)))
    return True


def has_begun(path: Path) -> bool:
    """Return whether a build has stored its settings in a folder, or a merge has begun there."""
    layout = Layout(path)
    if layout.generations() or (layout.work / MERGE).is_file():
        return True
    return begun_settings(layout) is not None


def has_only_estimate(path: Path) -> bool:
    """Return whether a folder has an estimate, but no index: no build has begun there."""
    layout = Layout(path)
    if not layout.tables.is_file() or layout.generations():
        return False
    try:
        with Tables(layout.tables, read_only=True) as tables:
            return not tables.settings() and reading.last_estimate(layout) is not None
    except KetragError:  # the tables are damaged, which other errors report
        return False


def against(estimate: Mapping[str, Any], usage: Usage, seconds: float, size: int) -> list[dict[str, Any]]:
    """Return each estimated number with the actual one and the difference in percent."""
    actual = {
        "chunks": usage.chunks,
        "core_chunks": usage.core_chunks,
        "calls": usage.calls,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "embedding_tokens": usage.embedding_tokens,
        "seconds": seconds,
        "disk": size,
        "memory": usage.memory,
    }
    found = []
    for name, real in actual.items():
        said = estimate.get(name)
        if not isinstance(said, (int, float)) or real is None or not (said or real):
            continue
        off = 100.0 * (said - real) / real if real else None
        found.append({"name": name, "estimate": said, "actual": real, "off_percent": off})
    return found


def compare_estimate(path: Path, report: BuildReport) -> list[dict[str, Any]]:
    """Compare the stored estimate with a build that did all of the estimated work; else return nothing."""
    if not report.changed or any(stage.how != "ran" for stage in report.stages):
        return []
    estimate = last_estimate(path)
    stored = stored_settings(path)
    kept = names("build")
    said = estimate.get("settings") if estimate is not None else None
    if estimate is None or stored is None or not isinstance(said, dict):
        return []
    if estimate.get("characters") != report.usage.characters:
        return []  # an estimate of other documents
    if any(said.get(name) != stored.get(name) for name in kept):
        return []
    usage = report.usage
    if any(estimate.get(name) and not getattr(usage, name) for name in ("calls", "embedding_tokens")):
        return []  # the estimated work was already cached
    # Older generations in the folder do not count.
    held = sum(stage.bytes for stage in report.stages) + _size(Layout(path).tables)
    return against(estimate, usage, report.seconds, held)


def last_estimate(path: Path) -> dict[str, Any] | None:
    """Return the estimate that was stored last."""
    text = reading.last_estimate(Layout(path))
    try:
        found = json.loads(text) if text is not None else None
    except _UNCLEAR:
        return None
    return found if isinstance(found, dict) else None
