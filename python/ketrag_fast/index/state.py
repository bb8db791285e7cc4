"""The open generation of an index, restricted to the documents that the caller may see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Meter, stopper
from ketrag_fast.errors import IndexDamaged, IndexMissing, InputError
from ketrag_fast.query.open_generation import Opened, load
from ketrag_fast.query.query import Clock, Filter, Query
from ketrag_fast.records import replace
from ketrag_fast.storage.generation import MANIFEST, current_number, stamp_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import read_manifest

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.base.progress import Callback, Event
    from ketrag_fast.storage.generation import Generation

_OPEN_PARTS = 16
"""Maximum number of restricted states that stay open."""


class IndexState:
    """The open part of an index.

    Threads may share it, because each change replaces one attribute atomically.
    """

    def __init__(self, path: Path, settings: Settings, deadline: float | None = None) -> None:
        """Open the current generation of the index at `path` within `deadline` seconds."""
        self.path = path
        self.folder = self.path
        """Folder of the open index: `path`, or a folder inside it with the index of the allowed documents."""
        self.settings = settings
        self.allows: tuple[Condition, ...] = ()
        if settings.allow is not None:
            from ketrag_fast.base.filters import allow_condition

            self.allows = (allow_condition(settings.allow),)
        self.checked: tuple[float, Any] | None = None
        """Time and result (`Freshness`) of the last comparison of the sources with the index."""
        self.unindexed: tuple[str, ...] = ()
        """Paths of the files that had changed at that time, or were new, and that were not indexed."""
        self.without_sources: tuple[int, tuple[int, int]] | None = None
        """The generation, as in `stamp`, of which the index knows no sources that could change."""
        self._parts: dict[str, IndexState] = {}
        self._lent = False
        self.stamp: tuple[int, tuple[int, int]]
        """Number and stamp of the open generation of the whole index, which no other generation has."""
        self._now: Opened | None
        self._now, self.folder, self.stamp = self._load(None, Clock(deadline, 1))

    @property
    def opened(self) -> Opened:
        """The open generation. Raises InputError after `close`."""
        now = self._now
        if now is None:
            raise InputError("the index is closed", hint="open it again with Index.open")
        return now

    @property
    def whole(self) -> Generation | None:
        """The open generation of the whole index; None if only its allowed documents are open."""
        return None if self.allows else self.opened.generation

    def refresh(self, deadline: float | None = None, *, warm: bool = False) -> bool:
        """Open the latest generation if it is newer than the open one; return whether the generation changed.

        With `warm`, the files that queries need are read before queries use it. Raises DeadlineExceeded after
        `deadline` seconds; the open generation then stays open.
        """
        clock = Clock(deadline, 1)
        before, opened = self.stamp, self.opened
        if not self._is_behind():
            return False
        latest, folder, whole = self._load(opened, clock)
        if warm:
            from ketrag_fast.query.core_plans import warm_up

            warm_up(latest, self.path)
        self._now, self.folder, self.stamp = latest, folder, whole
        self._parts = {}
        return self.stamp != before

    def _is_behind(self) -> bool:
        """Return whether a generation other than the open one is published."""
        layout = Layout(self.path)
        number = current_number(layout)
        return number is None or (number, stamp_of(layout.generation(number))) != self.stamp

    def close(self) -> None:
        """Release the mapped files, and the models unless they belong to another state."""
        now, self._now = self._now, None
        self._parts = {}
        if now is not None and not self._lent:
            now.close()

    def restricted(self, allow: Condition, progress: Callback | None = None) -> IndexState:
        """Return the state restricted to matching documents, from the cache if possible.

        Raises InputError for an unknown field; the message does not reveal which fields exist. IndexLocked,
        ReadOnly, Cancelled if the index of the documents cannot be built.
        """
        key = repr(allow)
        part = self._parts.pop(key, None)
        if part is None or part._now is None:
            part = IndexState.__new__(IndexState)
            part.path, part.settings, part.allows = self.path, self.settings, (*self.allows, allow)
            part._parts, part._lent, part.stamp = {}, True, self.stamp
            part.checked, part.unindexed, part.without_sources = None, (), None
            part._now, part.folder = _restrict(self.folder, self.opened, allow, self.settings, progress)
        self._parts[key] = part
        while len(self._parts) > _OPEN_PARTS:
            self._parts.pop(list(self._parts)[0], None)  # noqa: RUF015 - one step, safe next to other threads
        return part

    def restricted_by(self, allow: Filter, progress: Callback | None = None) -> IndexState:
        """Return the state restricted to documents that match a filter. Raises InputError for a bad one."""
        from ketrag_fast.base.filters import allow_condition

        return self.restricted(allow_condition(allow), progress)

    def shared(self) -> IndexState:
        """Return a second state over the same open generation, which can be closed separately."""
        other = IndexState.__new__(IndexState)
        other.__dict__.update(self.__dict__, _parts={}, _lent=True)
        return other

    def visible(self, query: Query, count: int = 1) -> tuple[IndexState, Query]:
        """Return the state restricted by `query.allow`, and the query with its remaining deadline.

        `count` is the number of queries that share the deadline.
        """
        if query.visible is None:
            return self, query
        clock = Clock(self.opened.settings.deadline if query.deadline is None else query.deadline, count)
        return self.restricted(query.visible, _until(clock)), query.without_allow(clock.each())

    def _load(self, before: Opened | None, clock: Clock) -> tuple[Opened, Path, tuple[int, tuple[int, int]]]:
        """Open the current generation with the models of `before`, restricted by the settings' `allow`.

        Returns the generation, its folder, and the number and stamp of the whole index's generation.
        """
        opened = load(self.path, self.settings, before)
        folder, whole = self.path, (opened.generation.number, opened.generation.stamp)
        for allow in self.allows:
            opened, folder = _restrict(folder, opened, allow, self.settings, _until(clock))
        return opened, folder, whole


def _until(clock: Clock) -> Callback:
    """Return a callback that raises DeadlineExceeded after the deadline."""

    def in_time(_: Event) -> bool:
        clock.left()
        return True

    return in_time


def _restrict(
    folder: Path, opened: Opened, allow: Condition, settings: Settings, progress: Callback | None
) -> tuple[Opened, Path]:
    """Open the index of the documents of `opened` that match `allow`; build it if it does not exist.

    Models that `opened` has open are shared if the indexes use the same ones. Returns the opened generation
    and the folder of its index.
    """
    from ketrag_fast.building.allowed_index import allowed_index

    documents = _matching_documents(opened, allow, progress)
    layout, generation, trust = Layout(folder), opened.generation, opened.trust
    part = allowed_index(layout, generation, documents, opened.settings, trust, progress)
    given = Settings(**{name: value for name, value in settings.given.items() if name != "allow"})
    try:
        loaded = load(part.folder, given, _lender(opened, part.folder), trust)
    except (IndexMissing, IndexDamaged):  # another process removed it meanwhile, or it is damaged
        part = allowed_index(layout, generation, documents, opened.settings, trust, progress, rebuild=True)
        loaded = load(part.folder, given, _lender(opened, part.folder), trust)
    # Report the number of the whole index, because callers cache answers by generation.
    manifest = replace(loaded.generation.manifest, generation=generation.number)
    numbered = replace(loaded.generation, manifest=manifest)
    return replace(loaded, generation=numbered, pending=part.pending), part.folder


def _matching_documents(opened: Opened, allow: Condition, progress: Callback | None) -> list[str]:
    """Return the ids of the documents whose metadata matches."""
    from ketrag_fast.base.filters.allow import as_allow
    from ketrag_fast.systems.shared.rows import read_strings

    check = stopper(Meter("filter", progress))
    try:
        matches = opened.columns(check).fitting(allow, names=False, check=check)
    except InputError as error:
        raise as_allow(error) from None
    units = opened.generation.stages["units"]
    # A row is a document or one of its sections. A document is allowed if all of its rows are.
    allowed: dict[str, bool] = {}
    names = read_strings(units, "document_ids")
    for name, match in zip(names, matches.tolist(), strict=True):
        allowed[name] = match and allowed.get(name, True)
    return [name for name, match in allowed.items() if match]


def _lender(opened: Opened, folder: Path) -> Opened | None:
    """Return the whole index as a source of models if the index in `folder` has the same embedding model."""
    layout = Layout(folder)
    manifest = read_manifest(layout.generation(current_number(layout) or 1) / MANIFEST)
    same = manifest.models.get("embedder") == opened.generation.manifest.models.get("embedder")
    return opened if same else None
