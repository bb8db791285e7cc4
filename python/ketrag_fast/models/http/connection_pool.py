"""Open connections to one host, kept for the next request of any thread.

Idle connections are closed when they are next looked at: on every request, and by `close`. No thread watches
them, so that nothing survives a call and the pool works after `fork`.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Final
from weakref import WeakSet

from ketrag_fast.models.http.addresses import Address
from ketrag_fast.models.http.connection import Look, Wire

IDLE_SECONDS: Final = 30.0
"""A connection unused for longer is closed: routers forget silent connections, and then a request hangs."""
LARGEST: Final = 16
"""Idle connections kept; more than the requests of one model at a time would never be used."""


class Connections:
    """A thread-safe pool of connections to one address. `opened` counts the connections opened so far."""

    def __init__(self, place: Address) -> None:
        self.place = place
        self.opened = 0
        self._lock = threading.Lock()
        self._idle: list[tuple[Wire, float]] = []
        self._closed = False
        _POOLS.add(self)

    def take(self, look: Look, *, fresh: bool = False) -> tuple[Wire, bool]:
        """Return a connection for one request, and whether it was used before.

        The most recently used one comes first; connections that were idle too long or closed by the server
        are closed here. With `fresh`, all idle ones are dropped and a new one is opened. Raises like `Wire`.
        """
        dead: list[Wire] = []
        found: Wire | None = None
        oldest = time.monotonic() - IDLE_SECONDS
        with self._lock:
            while self._idle and (fresh or self._idle[0][1] < oldest):
                dead.append(self._idle.pop(0)[0])
            while found is None and self._idle:
                wire = self._idle.pop()[0]
                if wire.ready():
                    found = wire
                else:
                    dead.append(wire)
        for wire in dead:
            wire.close()
        if found is not None:
            return found, True
        made = Wire(self.place, look)
        with self._lock:
            self.opened += 1
        return made, False

    def give(self, wire: Wire) -> None:
        """Return a connection whose reply was read; it is closed if it cannot serve another request."""
        if wire.is_reusable():
            with self._lock:
                if not self._closed and len(self._idle) < LARGEST:
                    self._idle.append((wire, time.monotonic()))
                    return
        wire.close()

    def close(self) -> None:
        """Close the idle connections, now, and those in use when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for wire, _ in idle:
            wire.close()

    def forget(self) -> None:
        """Start empty in a child process: the connections belong to the parent, and the lock may be held by a
        thread that does not exist here. Closing the child's copies does not end the parent's connections.
        """
        self._lock = threading.Lock()
        idle, self._idle = self._idle, []
        for wire, _ in idle:
            wire.close()


_POOLS: Final[WeakSet[Connections]] = WeakSet()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
