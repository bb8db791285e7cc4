"""Reads files in processes of their own, several at once, each within limits of time, memory and text.

Items come in the order of the files, however many processes read. A file whose process crashes, takes too
long or too much memory is a Failure; the others go on in a new process.
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
from functools import partial
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Any, Final, Self

from ketrag_fast.readers import FORMATS, Item, SourceFile, items_of
from ketrag_fast.readers.text_limit import READ_TEXT
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.locations import from_rows

_AHEAD: Final = 2
"""Files that are read ahead of the one whose items are taken, for each process."""
_LOOKED: Final = 64
_QUEUED: Final = 64
_POLL: Final = 0.2
_NO_MEMORY: Final = 77

ReadJob = tuple[SourceFile, str]
"""A file and its kind."""
Items = Queue[Item | None]
"""What was read of one file; None is the end."""
_Job = tuple[SourceFile, str, Items]


class Apart:
    """The processes of one build. They are started when files need them, and end with `close`.

    Files are given to processes in their order, so that the one whose items are taken is always being read:
    processes that wait for room for the items of later files cannot keep it waiting.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes."""
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
        """Each file with its items, in order. `waiting` is called now and then while nothing comes; what it
        raises ends the reading.
        """
        source = iter(files)
        pending: deque[tuple[SourceFile, str, Items | None]] = deque()
        running = 0
        more = True
        while more or pending:
            while more and running < self._most * _AHEAD and len(pending) < _LOOKED:
                found = next(source, None)
                if found is None:
                    more = False
                    break
                file, kind = found
                queue: Items | None = None
                if FORMATS[kind].apart(file):
                    queue = Queue(_QUEUED)
                    running += 1
                    self._give((file, kind, queue))
                pending.append((file, kind, queue))
            if not pending:
                return
            file, kind, queue = pending.popleft()
            if queue is None:
                yield file, items_of(file, kind, self._largest, self._read_text)
            else:
                items = _drain(queue, waiting)
                yield file, items
                for _ in items:  # who took only some is done with this file
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
        """In a thread: one process that reads file after file."""
        process: _Process | None = None
        while (job := self._jobs.get()) is not None:
            file, kind, queue = job
            put = partial(self._put, queue)
            try:
                if not self._closed:
                    process = process or self._started()
                    if not process.read(file, kind, self._largest, self._read_text, put):
                        process = None
            except (OSError, TypeError) as error:
                put(file.failure(f"no process could be started to read it: {error}"))
                process = None
            except ValueError as error:  # what it said is no reply
                put(file.failure(f"its reader's reply makes no sense: {error}"))
                if process is not None:
                    process.kill()
                process = None
            finally:
                put(None)
                with self._lock:
                    self._waiting -= 1

    def _started(self) -> _Process:
        process = _Process(self._megabytes, self._seconds)
        with self._lock:
            self._processes = [one for one in self._processes if one.alive()]
            self._processes.append(process)
        if self._closed:
            process.kill()
        return process

    def _put(self, queue: Items, item: Item | None) -> None:
        while not self._closed:
            with suppress(Full):  # whoever takes the items is busy
                queue.put(item, timeout=_POLL)
                return

    def _guard(self) -> None:
        """In a thread: ends processes that take too long."""
        while not self._closed:
            time.sleep(_POLL)
            with self._lock:
                every = list(self._processes)
            for process in every:
                process.end_if_late()


def _drain(queue: Items, waiting: Callable[[], None]) -> Iterator[Item]:
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
    """One process that reads."""

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
        """Time counts while the process works, not while its items wait to be taken."""
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
        put: Callable[[Item | None], None],
    ) -> bool:
        """Gives the items of a file; False where the process is of no more use."""
        asked = {
            "path": os.fsencode(file.path).hex(),
            "id": file.id,
            "encoding": file.fallback_encoding,
            "kind": kind,
            "follow_links": file.follow_links,
            "largest": largest,
            "read_text": read_text,
        }
        self._spent = 0.0
        stdin, stdout = self._child.stdin, self._child.stdout
        if stdin is None or stdout is None:
            return False
        try:
            stdin.write(json.dumps(asked).encode() + b"\n")
            stdin.flush()
        except OSError:
            put(file.failure(self._why()))
            return False
        while True:
            self._since = time.monotonic()
            line = stdout.readline()
            self._spent += time.monotonic() - self._since
            self._since = None
            if not line.endswith(b"\n"):
                put(file.failure(self._why()))
                return False
            made = json.loads(line)
            if "end" in made:
                return True
            put(_item(made))
            if FORMATS[kind].alike:
                self._spent = 0.0

    def _why(self) -> str:
        """What ended the process."""
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
            return f"its reader crashed ({name})"
        return f"its reader ended with code {code}"


def _item(made: dict[str, Any]) -> Item:
    if "failure" in made:
        return Failure(*made["failure"])
    locators = from_rows(json.loads(made["locators"])) if made["locators"] else ()
    return Document(made["id"], made["text"], made["title"], made["metadata"], locators)
