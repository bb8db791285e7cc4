"""Finished replies that may be asked for again, within a bound of bytes; the oldest go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class ReplyCache:
    """Used from one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._replies: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()

    def get(self, key: Hashable) -> bytes | None:
        """The reply, if it is still there."""
        found = self._replies.get(key)
        if found is None:
            return None
        self._replies.move_to_end(key)
        return found[0]

    def add(self, key: Hashable, reply: bytes, extra: int) -> None:
        """`extra` is what the key itself takes."""
        size = len(reply) + extra
        if size > self._most or key in self._replies:
            return
        self._replies[key] = (reply, size)
        self._size += size
        while self._size > self._most:
            _, (_, gone) = self._replies.popitem(last=False)
            self._size -= gone

    def __len__(self) -> int:
        return len(self._replies)
