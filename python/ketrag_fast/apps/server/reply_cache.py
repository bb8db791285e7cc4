"""A cache of replies with a bound in bytes; the least recently used are evicted first."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

ENTRY_BYTES: Final = 700
"""Bytes of an entry besides its reply and the texts of its key: a key, two tuples, a place in the table, and
what the allocator adds to each."""


class ReplyCache:
    """Used from one event loop. `most` is the maximum memory of all entries in bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._replies: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()

    @property
    def size(self) -> int:
        """Size of all entries in bytes."""
        return self._size

    def get(self, key: Hashable) -> bytes | None:
        """Return the reply, if it is in the cache."""
        entry = self._replies.get(key)
        if entry is None:
            return None
        self._replies.move_to_end(key)
        return entry[0]

    def add(self, key: Hashable, reply: bytes, texts: tuple[str | None, ...]) -> None:
        """Store a copy of a reply. `texts` are the texts in the key, which count as well.

        A copy, because orjson leaves the buffer of a document as large as it grew while it was written: four
        times the size of a reply with passages.
        """
        size = ENTRY_BYTES + sys.getsizeof(reply) + sum(sys.getsizeof(text) for text in texts if text)
        if size > self._most or key in self._replies:
            return
        self._replies[key] = (bytes(memoryview(reply)), size)
        self._size += size
        while self._size > self._most:
            _, (_, size) = self._replies.popitem(last=False)
            self._size -= size

    def __len__(self) -> int:
        return len(self._replies)
