"""Build and change indexes on disk; each function returns a report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings, names
from ketrag_fast.errors import InputError
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.query import Filter
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.systems.index_settings import begun_settings, check_embedder
from ketrag_fast.systems.planning import stages_for

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.building.preview import Preview
    from ketrag_fast.building.sources import Others, Sources
    from ketrag_fast.types import BuildReport, Document, Failure

PathText = str | os.PathLike[str]


def build_index(
    sources: Sources,
    path: PathText,
    settings: Settings,
    *,
    progress: Callback | None = None,
    examples: Sequence[str] | None = None,
    replace: bool = False,
    **options: Any,
) -> BuildReport:
    """Build an index or bring it up to date; `replace` drops all other sources.

    `options` are fields of `BuildOptions`.
    """
    from ketrag_fast.building.runner import BuildOptions, build

    if "embedder" in settings.given:
        check_embedder(settings.given["embedder"])  # before any document is read
    questions = None
    if examples is not None:
        from ketrag_fast.index.annotations import checked_examples, store_examples

        questions = checked_examples(examples)
    others: Others = "drop" if replace else "read"
    with _shown(path, progress) as shown:
        report = build(path, sources, stages_for, settings, BuildOptions(others=others, **options), shown)
    if questions is not None:
        store_examples(Path(path), questions)
    return report


def read_sources(sources: Sources, settings: Settings) -> Iterator[Document | Failure]:
    """Yield the documents and failures that a build would read from `sources`, without storing anything.

    Raises DocumentError if a source is missing.
    """
    from ketrag_fast.building.sources import read_sources as read

    return read(sources, settings)


def has_begun(path: Path) -> bool:
    """Return whether a build or a merge has begun in a folder."""
    layout = Layout(path)
    if layout.generations() or (layout.work / MERGE).is_file():
        return True
    return begun_settings(layout) is not None


def reembed_index(state: IndexState, embedder: str | None, *, progress: Callback | None) -> BuildReport:
    """Replace the vectors of an open index by those of an embedding model, by default the index's model."""
    from ketrag_fast.building.reembed import reembed

    usable = {"embedder", *names("query", "run")}
    kept = Settings(**{name: value for name, value in state.settings.given.items() if name in usable})
    wanted = kept if embedder is None else kept.having(embedder=embedder)
    with _shown(state.path, progress) as shown:
        return reembed(state.path, stages_for, wanted, progress=shown)


def merge_indexes(
    parts: Iterable[PathText], path: PathText, settings: Settings, **options: Any
) -> BuildReport:
    """Merge several indexes into one."""
    from ketrag_fast.building.merge import merge

    if isinstance(parts, (str, os.PathLike)):
        raise InputError(f"{os.fspath(parts)} is one index; merging takes a list of indexes")
    return merge([Path(part) for part in parts], Path(path), stages_for, settings, **options)


def update_index(
    state: IndexState,
    add: Sources,
    remove: str | Sequence[str],
    where: Filter | None,
    *,
    progress: Callback | None,
    **options: Any,
) -> BuildReport:
    """Add and remove documents of an open index. `options` are fields of `BuildOptions`.

    Raises InputError if parts of the index are hidden.
    """
    from ketrag_fast.building.runner import BuildOptions, build

    if state.allows:
        raise InputError("an index opened with allow cannot be changed", hint="open it without allow")
    Layout(state.path).require()
    chosen = BuildOptions(
        others="keep",
        remove=_patterns(remove),
        where=_removal_condition(where),
        opened=state.opened.generation,
        **options,
    )
    with _shown(state.path, progress) as shown:
        return build(state.path, add, stages_for, state.settings, chosen, shown)


def preview_update(
    path: PathText,
    add: Sources,
    remove: str | Sequence[str],
    where: Filter | None,
    settings: Settings,
    *,
    reread: bool = False,
    replace: bool = False,
    progress: Callback | None = None,
) -> Preview:
    """Return the changes that an update would make.

    With `reread`, return those of a build, which need no index, and with `replace` those of a build with only
    these sources.
    """
    from ketrag_fast.building.ingest import Change
    from ketrag_fast.building.preview import preview

    others: Others = "drop" if replace else "read" if reread else "keep"
    change = Change(add, others, _patterns(remove), _removal_condition(where))
    return preview(Path(path), change, settings, progress)


def _removal_condition(where: Filter | None) -> Condition | None:
    """Parse the filter of documents to remove. Raises InputError if it matches every document."""
    if where is None:
        return None
    from ketrag_fast.base.filters import filter_condition
    from ketrag_fast.base.filters.allow import holds_always, shown

    condition = filter_condition(where)
    if holds_always(condition):
        raise InputError(
            f"filter: {shown(where)} holds for every document, so all would be removed: is a variable or a "
            "list empty?",
            hint="to remove every document, give the pattern '*'",
        )
    return condition


def _patterns(remove: str | Sequence[str]) -> tuple[str, ...]:
    return (remove,) if isinstance(remove, str) else tuple(remove)


def leaves_out(source: Path, changed: Path, settings: Settings) -> bool:
    """Return whether a source excludes a changed file by `exclude` or a `.gitignore`."""
    from ketrag_fast.building import sources

    return sources.leaves_out(
        source, changed, settings.exclude, gitignore=settings.gitignore, follow=settings.follow_links
    )


def _shown(path: PathText, progress: Callback | None) -> AbstractContextManager[Callback]:
    """Store the progress of a build for other processes while a block runs."""
    from ketrag_fast.storage.lock import progress_shown  # it imports more, which queries do not need

    return progress_shown(Layout(Path(path)), progress)
