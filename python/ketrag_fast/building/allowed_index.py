"""An index of the documents that a caller is allowed to see, built from the whole index.

It is built from these documents alone, so a query cannot read, count, walk through or reveal any others. It
reuses stored replies and vectors and calls no language model. It is a folder inside the whole index, built on
the first request for its set of documents, shared by callers with the same set, and deleted with the
generation that it was built from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.base.config import Settings, names
from ketrag_fast.base.progress import Meter, stopper
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import ConfigError, IndexDamaged, IndexLocked, ModelMismatch
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.copy_tables import copy_subset
from ketrag_fast.storage.durable import discard_folder, write_json
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import alone, drop_old
from ketrag_fast.storage.manifest import read_manifest
from ketrag_fast.systems.index_settings import settings_of, understood
from ketrag_fast.systems.planning import stages_for
from ketrag_fast.systems.registry import registry

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.storage.generation import Generation
    from ketrag_fast.systems.spec.stage import Stage
    from ketrag_fast.types import BuildReport

_ABOUT: Final = "allowed.json"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The folder of an allowed index, and how many of its chunks still need extraction by an LLM."""

    folder: Path
    pending: int


def allowed_index(
    layout: Layout,
    generation: Generation,
    documents: Sequence[str],
    settings: Settings,
    trust: Trust,
    callback: Callback | None = None,
    *,
    rebuild: bool = False,
) -> Allowed:
    """Return the index of `documents` (ids, in order) of a generation of `layout`; build it if it is missing.

    Args:
        settings: the settings that do not come from the generation: location of the embedder, threads.
        trust: the endpoints that the whole index may use.
        callback: progress; also called while another process holds the index.
        rebuild: build it even if it exists.

    Raises:
        IndexLocked: the documents have changed since the generation.
        ModelMismatch: the embedder is not the one that the index was built with.
        Cancelled: `callback` returned False.
    """
    number = current_number(layout)
    key = text_digest([generation.manifest.digest, *documents])[:32]
    folder = layout.allowed / f"{number or 0:06}-{key}"
    with writing(layout.root):
        layout.allowed.mkdir(mode=0o700, exist_ok=True)
    with alone(folder, check=stopper(Meter("wait", callback))):
        index = None if rebuild else _find_finished(folder)
        if index is None:
            discard_folder(folder)
            try:
                own = Layout(folder)
                own.create()
                check = stopper(Meter("copy", callback, "rows"))
                copied = copy_subset(layout.tables, own.tables, documents, check)
                if copied != generation.manifest.documents.get("fingerprint"):
                    raise _documents_changed(layout)
                index = _build_allowed(own, generation, settings, trust, callback)
            except BaseException:
                discard_folder(folder)
                raise
        if current_number(layout) != number:  # documents removed from the whole index must not stay here
            discard_folder(folder)
            raise _documents_changed(layout)
        with suppress(OSError):
            os.utime(folder)
    drop_old(layout, folder)
    return index


def _build_allowed(
    own: Layout, generation: Generation, settings: Settings, trust: Trust, callback: Callback | None
) -> Allowed:
    """Build the index of copied documents with the stages, vectors and replies of the whole index."""
    from ketrag_fast.building.runner import BuildOptions, build  # queries mostly find it built

    folder = own.root
    given = _settings_of_build(generation, settings)
    stages = partial(_plan_stages, frozenset(generation.manifest.stages))
    options = BuildOptions(others="keep", purge=True, trust=trust, vectors_of=generation)
    read = generation.manifest.settings.get("llm", "none") not in ("none", "heuristic")
    pending = 0
    try:
        report = build(folder, (), stages, given, replace(options, partial=read), callback)
        pending = _count_pending(report)
    except ConfigError:
        if not read:
            raise
        # No replies are stored: leave out every stage that needs a reader.
        report = build(folder, (), stages, given.having(llm="none"), options, callback)
        pending = 1
    _require_model(own, generation)
    write_json(folder / _ABOUT, {"pending": pending})
    return Allowed(folder, pending)


def _plan_stages(there: frozenset[str], settings: Settings, reads: bool) -> Sequence[Stage]:
    """Return the stages that the whole index has."""
    known = [stage for stage in registry().stages if stage.name in there]
    need_reader = any(stage.reads for stage in known)
    return stages_for(settings, reads, [stage.name for stage in known] if reads or not need_reader else ())


def _settings_of_build(generation: Generation, settings: Settings) -> Settings:
    stored = understood(settings_of(generation.manifest))
    known = {name: value for name, value in stored.items() if name in names("build", "read")}
    moved = {"embedder": settings.embedder, "threads": settings.threads, "verify": settings.verify}
    return Settings(**{**known, **moved})


def _count_pending(report: BuildReport) -> int:
    about = report.extraction or {}
    summaries = about.get("summaries") or {"made": 0, "wanted": 0}
    return int(about.get("pending", 0)) + max(int(summaries["wanted"]) - int(summaries["made"]), 0)


def _require_model(own: Layout, generation: Generation) -> None:
    made = read_manifest(own.generation(current_number(own) or 1) / MANIFEST).models.get("embedder") or {}
    stored = generation.manifest.models.get("embedder") or {}
    if made.get("fingerprint") != stored.get("fingerprint"):
        raise ModelMismatch(
            "the embedder is not the one that the index was built with",
            hint="give its location with --embedder, or run `ketrag reembed`",
        )


def _find_finished(folder: Path) -> Allowed | None:
    """Return the index if it was finished; None if it was not, or if its record is unreadable."""
    try:
        about = json.loads(read_regular(folder / _ABOUT))
        pending = about["pending"]
    except (OSError, ValueError, KeyError, TypeError, IndexDamaged, RecursionError):
        return None
    if not isinstance(pending, int) or current_number(Layout(folder)) is None:
        return None
    return Allowed(folder, pending)


def _documents_changed(layout: Layout) -> IndexLocked:
    return IndexLocked(
        f"the documents of {layout.root} have changed since the open generation was published",
        hint="retry when the build has finished (if it was stopped, run `ketrag index`); refresh() switches "
        "an open index to the new generation",
    )
