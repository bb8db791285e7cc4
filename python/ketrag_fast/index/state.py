"""The open generation of an index, restricted to the documents that the caller may see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import InputError
from ketrag_fast.query.open_generation import Opened, load
from ketrag_fast.query.query import Clock, Query
from ketrag_fast.storage.generation import current_number, stamp_of
from ketrag_fast.storage.layout import Layout

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.base.progress import Callback, Event

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
        self._parts: dict[str, IndexState] = {}
        self._lent = False
        self._whole: tuple[int, tuple[int, int]] = (0, (0, 0))
        """Number and stamp of the open generation of the whole index."""
        self._now: Opened | None
        self._now, self.folder, self._whole = self._load(None, Clock(deadline, 1))

    @property
    def opened(self) -> Opened:
        """The open generation. Raises InputError after `close`."""
        now = self._now
        if now is None:
            raise InputError("the index is closed", hint="open it again with Index.open")
        return now

    def refresh(
        self, deadline: float | None = None, prepare: Callable[[Opened, Path], object] | None = None
    ) -> bool:
        """Open the latest generation if it is newer than the open one; return whether the generation changed.

        `prepare` is called with the new generation before queries use it. Raises DeadlineExceeded after
        `deadline` seconds; the open generation then stays open.
        """
        clock = Clock(deadline, 1)
        before, opened = self._whole, self.opened
        if not self._is_behind():
            return False
        latest, folder, whole = self._load(opened, clock)
        if prepare is not None:
            prepare(latest, self.path)
        self._now, self.folder, self._whole = latest, folder, whole
        self._parts = {}
        return self._whole != before

    def _is_behind(self) -> bool:
        """Return whether a generation other than the open one is published."""
        layout = Layout(self.path)
        number = current_number(layout)
        return number is None or (number, stamp_of(layout.generation(number))) != self._whole

    def close(self) -> None:
        """Release the mapped files, and the models unless they belong to another state."""
        now, self._now = self._now, None
        self._parts = {}
        if now is not None and not self._lent:
            now.close()

    def restricted(self, allow: Condition, progress: Callback | None = None) -> IndexState:
        """Return the state restricted to matching documents, from the cache if possible.

        Raises the errors of `index.allowed.restrict`.
        """
        from ketrag_fast.index.allowed import restrict

        key = repr(allow)
        part = self._parts.pop(key, None)
        if part is None or part._now is None:
            part = IndexState.__new__(IndexState)
            part.path, part.settings, part.allows = self.path, self.settings, (*self.allows, allow)
            part._parts, part._lent, part._whole = {}, True, self._whole
            part._now, part.folder = restrict(self.folder, self.opened, allow, self.settings, progress)
        self._parts[key] = part
        while len(self._parts) > _OPEN_PARTS:
            self._parts.pop(list(self._parts)[0], None)  # noqa: RUF015 - one step, safe next to other threads
        return part

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
        if self.allows:
            from ketrag_fast.index.allowed import restrict

            for allow in self.allows:
                opened, folder = restrict(folder, opened, allow, self.settings, _until(clock))
        return opened, folder, whole


def _until(clock: Clock) -> Callback:
    """Return a callback that raises DeadlineExceeded after the deadline."""

    def in_time(_: Event) -> bool:
        clock.left()
        return True

    return in_time
