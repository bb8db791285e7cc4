"""Open indexes joined into one collection, kept in memory for the next queries.

The collections of all sets of indexes together have a maximum number of keywords, which stands for their
bytes, and the least recently used ones are dropped first. A collection is dropped as soon as one of its
indexes is replaced by a new generation or closed. Each set has a separate lock, so that the join of one
never delays the queries of another."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ketrag_fast import _core
from ketrag_fast.errors import DeadlineExceeded
from ketrag_fast.records import dataclass, field

if TYPE_CHECKING:
    from ketrag_fast.query.open_generation import Opened

MOST_KEPT: Final = 2_400_000
"""Maximum number of keywords, counting repetitions, of all collections that are kept: two of the largest
ones, which have about 100 bytes for each keyword."""

Key = tuple[int, ...]


@dataclass
class _Entry:
    """A set of indexes: its collection, once it is joined."""

    references: tuple[weakref.ref[Opened], ...]
    keywords: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    union: _core.Union | None = None
    tried: float = 0.0
    """Seconds in which a join was not finished."""


class JoinedIndexes:
    """The collections of sets of open indexes."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def keywords(self) -> int:
        """Number of keywords of all collections."""
        with self._lock:
            return sum(one.keywords for one in self._entries.values() if one.union is not None)

    def find(self, opened: Sequence[Opened], keywords: int, seconds: float | None) -> _core.Union | None:
        """Return the units of open indexes as one collection, which is joined if it does not exist.

        Returns None if it cannot be joined in time. A set that took longer than `seconds` before is not tried
        again in so little time.
        """
        entry = self._entry(opened, keywords)
        if entry.union is not None:
            return entry.union
        if seconds is not None and seconds <= entry.tried:
            return None
        if not entry.lock.acquire(timeout=-1 if seconds is None else seconds):
            return None
        try:
            if entry.union is None:
                shards = [_core.Shard(one.searcher) for one in opened]
                entry.union = _core.Union.complete(shards, seconds=seconds)
        except DeadlineExceeded:
            entry.tried = seconds or 0.0
            return None
        finally:
            entry.lock.release()
        self._shrink()
        return entry.union

    def _entry(self, opened: Sequence[Opened], keywords: int) -> _Entry:
        """Return the entry of a set of indexes, and forget those of closed indexes."""
        key = tuple(map(id, opened))  # of a closed index, another one may have the same id
        with self._lock:
            for other, one in list(self._entries.items()):
                if any(reference() is None for reference in one.references):
                    del self._entries[other]
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _new_entry(opened, keywords)
            self._entries.move_to_end(key)
            return entry

    def _shrink(self) -> None:
        """Drop the least recently used collections, but the last one."""
        with self._lock:
            whole = [(key, one.keywords) for key, one in self._entries.items() if one.union is not None]
            total = sum(keywords for _, keywords in whole)
            for key, keywords in whole[:-1]:
                if total <= self._most:
                    return
                del self._entries[key]
                total -= keywords


def _new_entry(opened: Sequence[Opened], keywords: int) -> _Entry:
    """Return an entry that releases its collection when one of the indexes is closed."""
    entry = _Entry((), keywords)

    def release(_: weakref.ref[Opened]) -> None:
        entry.union = None

    entry.references = tuple(weakref.ref(one, release) for one in opened)
    return entry
