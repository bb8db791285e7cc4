"""Upgrading an index of the previous format: what is lost is built again from the texts of the index."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ketrag_fast.base.config import Settings, names
from ketrag_fast.base.progress import Callback
from ketrag_fast.building.runner import BuildOptions, build
from ketrag_fast.storage.earlier_format import upgrade_format
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.systems.planning import Planner, stages_on
from ketrag_fast.systems.shared import VECTORS
from ketrag_fast.systems.spec.stage import Stage
from ketrag_fast.types import BuildReport


def upgrade(
    path: str | os.PathLike[str],
    stages: Sequence[Stage] | Planner,
    settings: Settings,
    *,
    progress: Callback | None = None,
) -> BuildReport:
    """Upgrade the index at `path`; only the embedder and the run settings of `settings` count.

    Texts, words and links are reused; all stages that depend on vectors are computed again. No source is
    read. Raises IndexMissing, IndexIncompatible for other formats, and what `runner.build` raises.
    """
    layout = Layout(Path(path))
    layout.require()
    with builder_lock(layout):
        upgrade_format(layout, stages_on(VECTORS.name))
    wanted = {"embedder", *names("run")}
    given = Settings(**{name: value for name, value in settings.given.items() if name in wanted})
    return build(path, (), stages, given, BuildOptions(others="keep"), progress)
