"""Builds and changes of indexes on disk; each function returns what it did."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings, names
from ketrag_fast.base.filters import filter_condition
from ketrag_fast.errors import InputError
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.query import Filter
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.planning import stages_for

if TYPE_CHECKING:
    from ketrag_fast.build.ingest import Sources
    from ketrag_fast.build.preview import Preview
    from ketrag_fast.types import BuildReport

PathText = str | os.PathLike[str]


def build_index(sources: Sources, path: PathText, settings: Settings, **options: Any) -> BuildReport:
    """Build an index or bring it up to date."""
    from ketrag_fast.build.runner import build

    return build(path, sources, stages_for, settings, **options)


def reembed_index(path: PathText, settings: Settings, **options: Any) -> BuildReport:
    """Replace the vectors of an index by those of the embedder of the settings."""
    from ketrag_fast.build.reembed import reembed

    return reembed(path, stages_for, settings, **options)


def reembedding_settings(settings: Settings | None, embedder: str | None) -> Settings:
    """Return the settings that matter when an index is embedded again, with another embedder if given."""
    usable = {"embedder", *names("query", "run")}
    values = {} if settings is None else settings.given
    kept = Settings(**{name: value for name, value in values.items() if name in usable})
    return kept if embedder is None else kept.having(embedder=embedder)


def merge_indexes(
    parts: Iterable[PathText], path: PathText, settings: Settings, **options: Any
) -> BuildReport:
    """Merge several indexes into one."""
    from ketrag_fast.build.merge import merge

    return merge([Path(part) for part in parts], Path(path), stages_for, settings, **options)


def update_index(
    state: IndexState,
    add: Sources,
    remove: str | Sequence[str],
    where: Filter | None,
    **options: Any,
) -> BuildReport:
    """Add and remove documents of an open index. Raises InputError if parts of it are hidden."""
    from ketrag_fast.build.runner import build

    if state.allows:
        raise InputError("an index opened with allow cannot be changed", hint="open it without allow")
    Layout(state.path).require()
    return build(
        state.path,
        add,
        stages_for,
        state.settings,
        only=True,
        remove=_patterns(remove),
        where=None if where is None else filter_condition(where),
        **options,
    )


def preview_update(
    path: PathText,
    add: Sources,
    remove: str | Sequence[str],
    where: Filter | None,
    settings: Settings,
    **options: Any,
) -> Preview:
    """Return what an update or a build would change."""
    from ketrag_fast.build.preview import preview

    condition = None if where is None else filter_condition(where)
    return preview(Path(path), add, _patterns(remove), settings, where=condition, **options)


def _patterns(remove: str | Sequence[str]) -> tuple[str, ...]:
    return (remove,) if isinstance(remove, str) else tuple(remove)
