"""One builder at a time; readers need no lock."""

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
    """Holds the index for building, or raises IndexLocked at once. A dead holder's lock is free."""
    lock = FileLock(layout.lock, timeout=0)
    try:
        with writing(layout.root):
            lock.acquire()
    except Timeout:
        raise IndexLocked(
            f"another process is building the index in {layout.root}{_owner(layout)}",
            hint="wait for it to end; retrieval from the published generation is not disturbed",
        ) from None
    try:
        owner = {"pid": os.getpid(), "host": socket.gethostname()}
        with writing(layout.root):
            layout.owner.write_text(json.dumps(owner), "utf-8")
        yield
    finally:
        try:
            # Where the disk keeps it, the next holder writes it over.
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
