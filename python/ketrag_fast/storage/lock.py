"""The lock of the single builder; readers need no lock."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexLocked
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout


@contextmanager
def builder_lock(layout: Layout) -> Iterator[None]:
    """Lock the index for building, or raise IndexLocked at once. A dead process no longer holds its lock."""
    lock = FileLock(layout.lock, timeout=0)
    try:
        with writing(layout.root):
            lock.acquire()
    except Timeout:
        raise IndexLocked(
            f"another process is building the index in {layout.root}{_owner(layout)}",
            hint="wait until it has finished; queries on the published generation still work",
        ) from None
    try:
        owner = {"pid": os.getpid(), "host": socket.gethostname()}
        with writing(layout.root):
            layout.owner.write_text(json.dumps(owner), encoding="utf-8", newline="\n")
        yield
    finally:
        try:
            # If removal fails, the next holder overwrites it.
            with suppress(OSError):
                layout.owner.unlink(missing_ok=True)
        finally:
            lock.release()


def _owner(layout: Layout) -> str:
    try:
        owner = json.loads(read_regular(layout.owner))
        return f" (process {int(owner['pid'])} on {owner['host']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
