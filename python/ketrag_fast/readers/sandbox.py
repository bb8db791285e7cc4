"""Read files in separate processes, several at once, with limits on time, memory and text.

Items come in the order of the files, whatever the number of processes. A file whose process crashes or
exceeds a limit is a Failure; the next files are read in a new process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, Full, Queue
from typing import Any, Final, Self

from ketrag_fast.readers import FORMATS, READ_TEXT, Item, Items, SourceFile, batches_of, single
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.locations import from_rows

_AHEAD: Final = 2
"""Files that each process may read ahead of the one being consumed."""
_LOOKED: Final = 64
_QUEUED: Final = 64
_POLL: Final = 0.2
_NO_MEMORY: Final = 77

ReadJob = tuple[SourceFile, str]
"""A file and its kind."""
UNCHANGED: Final = "unchanged"
"""The kind of a file that is not read because the caller already has its documents."""
ItemQueue = Queue[Item | None]
"""The items of one file; None marks the end."""
Put = Callable[[Item | None], None]
_Job = tuple[SourceFile, str, ItemQueue]


class Apart:
    """The reader processes of one build. They start when files need them and end with `close`.

    Files are assigned in order, so the file being consumed is always being read: processes that wait for
    queue space for later files cannot block it.
    """

    def __init__(
        self,
        processes: int,
        seconds: float | None,
        megabytes: int,
        largest: int,
        read_text: int = READ_TEXT,
    ) -> None:
        self._most = max(processes, 1)
        self._seconds, self._megabytes, self._largest = seconds, megabytes, largest
        self._read_text = read_text
        self._jobs: Queue[_Job | None] = Queue()
        self._threads: list[threading.Thread] = []
        self._processes: list[_Process] = []
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            every, self._processes = self._processes, []
        for process in every:
            process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def read(
        self, files: Iterable[ReadJob], waiting: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[SourceFile, Iterator[Item]]]:
        """Yield each file with its items, in order.

        `waiting` is called regularly while no item arrives; an exception from it ends the reading.
        """
        for file, items in self.read_batches(files, waiting):
            yield file, single(items)

    def read_batches(
        self, files: Iterable[ReadJob], waiting: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[SourceFile, Iterator[Items]]]:
        """Yield the same items, in batches if the format has a batch reader."""
        source = iter(files)
        pending: deque[tuple[SourceFile, str, ItemQueue | None]] = deque()
        running = 0
        more = True
        while more or pending:
            while more and running < self._most * _AHEAD and len(pending) < _LOOKED:
                found = next(source, None)
                if found is None:
                    more = False
                    break
                file, kind = found
                queue: ItemQueue | None = None
                if kind != UNCHANGED and FORMATS[kind].apart(file):
                    queue = Queue(_QUEUED)
                    running += 1
                    self._give((file, kind, queue))
                pending.append((file, kind, queue))
            if not pending:
                return
            file, kind, queue = pending.popleft()
            if kind == UNCHANGED:
                yield file, iter(())
            elif queue is None:
                yield file, batches_of(file, kind, self._largest, self._read_text)
            else:
                items = _drain(queue, waiting)
                yield file, items
                for _ in items:  # drop items that the caller left
                    pass
                running -= 1

    def _give(self, job: _Job) -> None:
        with self._lock:
            self._waiting += 1
            if self._waiting > len(self._threads) and len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, daemon=True)
                self._threads.append(thread)
                thread.start()
                if len(self._threads) == 1 and self._seconds is not None:
                    threading.Thread(target=self._guard, daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        """Run one process that reads file after file (in a thread)."""
        process: _Process | None = None
        while (job := self._jobs.get()) is not None:
            file, kind, queue = job
            put = partial(self._put, queue)
            try:
                if not self._closed:
                    shared = replace(file, processes=self._unused() + 1)
                    process = self._read(process or self._start(), shared, kind, put)
            except (OSError, TypeError) as error:
                put(file.failure(f"cannot start a process to read the file: {error}"))
                process = None
            except ValueError as error:  # not a reply
                put(file.failure(f"invalid reply from the reader process: {error}"))
                if process is not None:
                    process.kill()
                process = None
            finally:
                put(None)
                with self._lock:
                    self._waiting -= 1

    def _unused(self) -> int:
        """Return how many processes no file needs now: the reader of a large file may use them."""
        with self._lock:
            return max(self._most - self._waiting, 0)

    def _read(self, process: _Process, file: SourceFile, kind: str, put: Put) -> _Process | None:
        """Read a file; return the process, or None if it cannot be used again.

        If the process ended, a format with a fallback is read again in another one.
        """
        some = False

        def count(item: Item | None) -> None:
            nonlocal some
            some = some or isinstance(item, Document)
            put(item)

        problem = process.read(file, kind, self._largest, self._read_text, count)
        if problem is None:
            return process
        fallback, lost = FORMATS[kind].fallback, FORMATS[kind].lost
        if fallback is None or some or self._closed:
            put(file.partial(problem) if some else file.failure(problem))
            return None
        documents: list[Item | None] = []
        process = self._start()
        again = process.read(file, fallback, self._largest, self._read_text, documents.append)
        kept = [item for item in documents if isinstance(item, Document)]
        for item in kept:
            put(item)
        note = f"{problem}; its text is kept without {lost}"
        put(file.partial(note) if kept else file.failure(problem))
        return process if again is None else None

    def _start(self) -> _Process:
        process = _Process(self._megabytes, self._seconds)
        with self._lock:
            self._processes = [one for one in self._processes if one.alive()]
            self._processes.append(process)
        if self._closed:
            process.kill()
        return process

    def _put(self, queue: ItemQueue, item: Item | None) -> None:
        while not self._closed:
            with suppress(Full):  # the consumer is busy
                queue.put(item, timeout=_POLL)
                return

    def _guard(self) -> None:
        """End processes that take too long (in a thread)."""
        while not self._closed:
            time.sleep(_POLL)
            with self._lock:
                every = list(self._processes)
            for process in every:
                process.end_if_late()


def _drain(queue: ItemQueue, waiting: Callable[[], None]) -> Iterator[Item]:
    while True:
        try:
            item = queue.get(timeout=_POLL)
        except Empty:
            waiting()
            continue
        if item is None:
            return
        yield item


class _Process:
    """One reader process."""

    def __init__(self, megabytes: int, seconds: float | None) -> None:
        self._megabytes, self._seconds = megabytes, seconds
        self._late = False
        self._since: float | None = None
        self._spent = 0.0
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "ketrag_fast.readers.sandbox_worker", str(megabytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )

    def alive(self) -> bool:
        return self._child.poll() is None

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def end_if_late(self) -> None:
        """Kill the process if it exceeds the time limit; waiting for the consumer does not count."""
        since = self._since
        if since is None or self._seconds is None:
            return
        if self._spent + time.monotonic() - since > self._seconds:
            self._late = True
            self._child.kill()

    def read(
        self,
        file: SourceFile,
        kind: str,
        largest: int,
        read_text: int,
        put: Put,
    ) -> str | None:
        """Pass the items of a file to `put`; return why the process ended, or None if it has not."""
        request = {
            "path": os.fsencode(file.path).hex(),
            "id": file.id,
            "encoding": file.fallback_encoding,
            "kind": kind,
            "follow_links": file.follow_links,
            "ocr": file.ocr,
            "hidden": file.hidden,
            "generated": file.generated,
            "processes": file.processes,
            "largest": largest,
            "read_text": read_text,
        }
        self._spent = 0.0
        stdin, stdout = self._child.stdin, self._child.stdout
        if stdin is None or stdout is None:
            return "the reader process has no pipes"
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except OSError:
            return self._why()
        while True:
            self._since = time.monotonic()
            line = stdout.readline()
            self._spent += time.monotonic() - self._since
            self._since = None
            if not line.endswith(b"\n"):
                return self._why()
            reply = json.loads(line)
            if "end" in reply:
                return None
            put(_item(reply))
            if FORMATS[kind].alike:
                self._spent = 0.0

    def _why(self) -> str:
        """Return why the process ended."""
        code = self._child.wait()
        if self._late:
            return f"reading it took longer than {self._seconds:g} s (setting read_seconds)"
        if code == _NO_MEMORY:
            return f"reading it took more than {self._megabytes:,} MB (setting read_memory)"
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = str(-code)
            return f"the reader process crashed ({name})"
        return f"the reader process ended with code {code}"


def _item(reply: dict[str, Any]) -> Item:
    if "failure" in reply:
        return Failure(*reply["failure"])
    locators = from_rows(json.loads(reply["locators"])) if reply["locators"] else ()
    return Document(reply["id"], reply["text"], reply["title"], reply["metadata"], locators)
