"""Computing the vectors of an index again, with another embedding model or the same one.

The documents and every stage that does not depend on vectors stay as they are, and no source is read. The new
vectors go to `work/` and to the vector cache; readers use the old generation until the new one is published.
If the call is killed, the old generation remains in use and the next call resumes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ketrag_fast.base.config import Settings, build_settings, names
from ketrag_fast.base.progress import Callback, Limited
from ketrag_fast.building.ingest import as_they_are
from ketrag_fast.building.model_settings import plan_reading, settings_for, stored_identity
from ketrag_fast.building.reports import remember
from ketrag_fast.building.stages import Build
from ketrag_fast.errors import IndexMissing, ModelMismatch
from ketrag_fast.models.embedders.build_model import VectorSource
from ketrag_fast.models.embedders.fingerprint import Identity, require_same
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.storage.durable import discard_folder
from ketrag_fast.storage.generation import finish_publication, newest_whole, prune
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.planning import Planner
from ketrag_fast.systems.spec.stage import Stage
from ketrag_fast.types import BuildReport


def reembed(
    path: str | os.PathLike[str],
    stages: Sequence[Stage] | Planner,
    settings: Settings,
    *,
    progress: Callback | None = None,
) -> BuildReport:
    """Compute all vectors with `settings.embedder`; by default with the embedder of the index.

    Only the embedder and the run settings count; the rest comes from the index. If the model now returns
    different vectors (it was replaced behind an endpoint), its cached vectors are dropped. Raises
    IndexMissing and what `runner.build` raises.
    """
    start = time.monotonic()
    layout = Layout(Path(path))
    layout.require()
    with builder_lock(layout):
        base = newest_whole(layout)
        if base is None:
            raise IndexMissing(
                f"the index in {layout.root} was never finished", hint="finish it first: ketrag index"
            )
        finish_publication(layout, base)
        asked = _embedding_settings(settings)
        _, reads = plan_reading(asked, base, layout, rebuild=False, partial=False)
        resolved = settings_for(base, asked, rebuild=True)
        chosen, trust = resolved.settings, Trust.of(layout, asked)
        noted = trust.keep(chosen)
        with Tables(layout.tables) as tables:
            work = Build(
                layout=layout,
                tables=tables,
                resolved=resolved,
                base=base,
                stages=stages,
                reads=reads,
                trust=trust,
                callback=Limited(progress, chosen.limit_seconds, start),
                start=start,
            )
            with work.opened():
                if work.source is not None:
                    if work.source.renew():  # stages of an interrupted build have the dropped vectors
                        for leftover in layout.work.iterdir():
                            discard_folder(leftover)
                    if _vectors_changed(stored_identity(base), work.source):
                        work.rerun = depending(work.planned, "embedder", chosen)
                        work.vectors_of = ()
                read = as_they_are(tables)
                read.warnings += noted
                report = work.run(read)
            with tables.transaction():
                tables.set_settings(build_settings(chosen))
            remember(tables, report)
        prune(layout, chosen.keep_generations)
    return report


def _embedding_settings(settings: Settings) -> Settings:
    wanted = {"embedder", *names("run")}
    return Settings(**{name: value for name, value in settings.given.items() if name in wanted})


def depending(stages: Iterable[Stage], setting: str, settings: Settings) -> frozenset[str]:
    """Return the names of the stages that depend on a setting, directly or through their needs."""
    found: set[str] = set()
    slots: set[str] = set()
    for stage in stages:  # each comes after what it needs
        if setting in stage.settings or slots.intersection(stage.needed(settings)):
            found.add(stage.name)
            slots.add(stage.slot)
    return frozenset(found)


def _vectors_changed(stored: Identity | None, source: VectorSource) -> bool:
    """Return whether a model with the stored fingerprint now returns different vectors."""
    if stored is None or stored.fingerprint != source.fingerprint:
        return False
    try:
        require_same(stored, source.model)
    except ModelMismatch:
        return True
    return False
