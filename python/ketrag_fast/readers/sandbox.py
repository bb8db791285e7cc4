"""Read files in separate processes, several at once, with limits on time, memory and text.

Items come in the order of the files, whatever the number of processes. A file whose process crashes or
exceeds a limit is a Failure; the next files are read in a new process.

The process runs this module: one request per line on its input, items on its output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from ketrag_fast.readers import FORMATS, READ_TEXT, Item, Items, SourceFile, batches_of, items_of
from ketrag_fast.readers.batches import Batches, Row, row_of
from ketrag_fast.records import replace
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import DocumentBatch

if TYPE_CHECKING:
    from queue import Queue

    ItemQueue = Queue[Items | None]
    """The items of one file; None marks the end."""
    _Job = tuple[SourceFile, str, ItemQueue]

_AHEAD: Final = 2
"""Files that each process may read ahead of the one being consumed."""
_LOOKED: Final = 64
_QUEUED: Final = 64
_POLL: Final = 0.2
_NO_MEMORY: Final = 77
_WAITING: Final = 4
"""How many times the time limit a process may take that waits: for processors, or for a slow disk."""
_OUT_OF_MEMORY: Final = ("SIGABRT", "SIGILL", "SIGTRAP")
"""How programs in C and C++ end if they get no memory, and hardly ever for another reason."""

ReadJob = tuple[SourceFile, str]
"""A file and its kind."""
UNCHANGED: Final = "unchanged"
"""The kind of a file that is not read because the caller already has its documents."""
Put = Callable[[Items | None], None]
_OPTIONS: Final = ("fallback_encoding", "follow_links", "ocr", "processes", "hidden", "generated")
"""Fields of a file that a request repeats."""


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
        self._jobs: Queue[_Job | None]
        """Made with the first job: text needs no process."""
        self._threads: list[threading.Thread] = []
        self._processes: list[Worker] = []
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
    ) -> Iterator[tuple[SourceFile, Iterator[Items]]]:
        """Yield each file with its items, in order; documents in batches if the format has a batch reader.

        `waiting` is called regularly while no item arrives; an exception from it ends the reading.
        """
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
                    queue = self._new_queue()
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
        process: Worker | None = None
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

    def _read(self, process: Worker, file: SourceFile, kind: str, put: Put) -> Worker | None:
        """Read a file; return the process, or None if it cannot be used again.

        If the process ended, a format with a fallback is read again in another one.
        """
        some = False

        def count(item: Items | None) -> None:
            nonlocal some
            some = some or isinstance(item, (Document, DocumentBatch))
            put(item)

        problem = process.read(self._request(file, kind), count, alike=FORMATS[kind].alike)
        if problem is None:
            return process
        fallback, lost = FORMATS[kind].fallback, FORMATS[kind].lost
        if fallback is None or some or self._closed:
            put(file.partial(problem) if some else file.failure(problem))
            return None
        documents: list[Items | None] = []
        process = self._start()
        again = process.read(self._request(file, fallback), documents.append)
        kept = [item for item in documents if isinstance(item, (Document, DocumentBatch))]
        for item in kept:
            put(item)
        note = f"{problem}; its text is kept without {lost}"
        put(file.partial(note) if kept else file.failure(problem))
        return process if again is None else None

    def _request(self, file: SourceFile, kind: str) -> dict[str, Any]:
        options = {name: getattr(file, name) for name in _OPTIONS}
        limits = {"largest": self._largest, "read_text": self._read_text}
        return {
            **packed_path(file),
            "id": file.id,
            "kind": kind,
            "options": options,
            **limits,
        }

    def _start(self) -> Worker:
        process = Worker(self._megabytes, self._seconds)
        with self._lock:
            self._processes = [one for one in self._processes if one.alive()]
            self._processes.append(process)
        if self._closed:
            process.kill()
        return process

    def _new_queue(self) -> ItemQueue:
        from queue import Queue

        if not self._threads:
            self._jobs = Queue()
        return Queue(_QUEUED)

    def _put(self, queue: ItemQueue, item: Items | None) -> None:
        from queue import Full

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


def _drain(queue: ItemQueue, waiting: Callable[[], None]) -> Iterator[Items]:
    from queue import Empty

    while True:
        try:
            item = queue.get(timeout=_POLL)
        except Empty:
            waiting()
            continue
        if item is None:
            return
        yield item


class Worker:
    """A process that reads files, or pages of a PDF.

    It has a limit of memory and of the time for a file. With 0 MB it inherits the memory limit of this
    process, and it ends when this process does, also in the middle of a request.
    """

    def __init__(self, megabytes: int = 0, seconds: float | None = None) -> None:
        self._megabytes, self._seconds = megabytes, seconds
        self._late = False
        self._since: float | None = None
        self._spent = self._busy = 0.0
        import subprocess  # imported here because most builds start no process

        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "ketrag_fast.readers.sandbox", str(megabytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )

    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._child.poll() is None

    def kill(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def end_if_late(self) -> None:
        """Kill the process if it exceeds the time limit; waiting for the consumer does not count.

        On a busy machine a process that got less than this time from the processors may go on for longer.
        """
        since = self._since
        if since is None or self._seconds is None:
            return
        spent = self._spent + time.monotonic() - since
        from ketrag_fast.readers.process_time import processor_seconds

        busy = processor_seconds(self._child.pid)
        if spent > self._seconds and (
            busy is None or busy - self._busy > self._seconds or spent > _WAITING * self._seconds
        ):
            self._late = True
            self._child.kill()

    def read(self, request: Mapping[str, Any], put: Put, *, alike: bool = False) -> str | None:
        """Pass the items of a file to `put`; return why the process ended, or None if it has not.

        With `alike`, the time limit applies to each item.
        """
        self._begin()
        if not self.send(request):
            return self._why()
        batches = Batches(put)
        while True:
            self._since = time.monotonic()
            reply = self.receive()
            self._spent += time.monotonic() - self._since
            self._since = None
            if isinstance(reply, list):
                batches.add(reply)
            else:
                batches.flush()
                if reply is None:
                    return self._why()
                if "end" in reply:
                    return None
                put(Failure(*reply["failure"]))
            if alike:
                self._spent = 0.0

    def _begin(self) -> None:
        """Begin to measure the time for a file."""
        self._spent = 0.0
        if self._seconds is not None:
            from ketrag_fast.readers.process_time import processor_seconds

            self._busy = processor_seconds(self._child.pid) or 0.0

    def send(self, request: Mapping[str, Any]) -> bool:
        """Send a request; return whether the process accepts one."""
        stdin = self._child.stdin
        try:
            if stdin is None:
                return False
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except OSError:
            return False
        return True

    def receive(self) -> Any:
        """Return the next reply, or None if the process has ended. Raises ValueError if it is not a reply."""
        line = b"" if self._child.stdout is None else self._child.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def _why(self) -> str:
        """Return why the process ended."""
        code = self._child.wait()
        if self._late:
            return f"reading it took longer than {self._seconds:g} s (setting read_seconds)"
        if code == _NO_MEMORY:
            return f"reading it took more than {self._megabytes:,} MB (setting read_memory)"
        if code < 0:
            import signal

            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = str(-code)
            if name in _OUT_OF_MEMORY and self._megabytes:
                return (
                    f"the reader process crashed ({name}), as parsers do that reach their memory limit"
                    f" (setting read_memory: {self._megabytes:,} MB, less for a small file)"
                )
            return f"the reader process crashed ({name})"
        return f"the reader process ended with code {code}"


def packed_path(file: SourceFile) -> dict[str, str | None]:
    """Return the fields of a request that have the path of a file, and the folder in which it must be."""
    path, root = (None if one is None else os.fsencode(one).hex() for one in (file.path, file.root))
    return {"path": path, "root": root}


def _unpacked(path: str) -> Path:
    return Path(os.fsdecode(bytes.fromhex(path)))


def _items(file: SourceFile, query: Mapping[str, Any], megabytes: int, no_memory: str) -> Iterator[Item]:
    """Yield the items of a file; if its parser fails for lack of memory, those of a plainer reader."""
    kind, limits = query["kind"], (query["largest"], query["read_text"])
    plainer = FORMATS[kind].fallback
    if plainer is None:
        # Pictures of pages are large, whatever the size of the file.
        is_bounded = kind == "pdf" and file.ocr is None
        from ketrag_fast.readers.parser_memory import memory_in_proportion

        with memory_in_proportion(file, megabytes) if is_bounded else nullcontext():
            yield from items_of(file, kind, *limits, no_memory=no_memory)
        return
    problem = "its parser needs too much memory"
    from ketrag_fast.readers.parser_memory import memory_in_proportion

    with memory_in_proportion(file, megabytes):
        first = list(items_of(file, kind, *limits, no_memory=problem))
    is_lost = any(isinstance(one, Failure) and _is_for_memory(one.message, problem) for one in first)
    second = list(items_of(file, plainer, *limits, no_memory=no_memory)) if is_lost else []
    if any(isinstance(one, Document) for one in second):
        yield from second
        yield file.partial(f"{problem}; its text is kept without {FORMATS[kind].lost}")
    else:
        yield from first


def _is_for_memory(message: str, problem: str) -> bool:
    """Whether a failure is that of a parser without memory; that of web pages does not say so."""
    return message == problem or message.startswith("not usable as HTML")


def serve(requests: Iterable[bytes], replies: IO[bytes], megabytes: int) -> None:
    """Answer requests until there are no more; `megabytes` is the memory limit of this process."""
    no_memory = f"reading it took more than {megabytes:,} MB (setting read_memory)"
    for line in requests:
        query = json.loads(line)
        path, root = _unpacked(query["path"]), _unpacked(query["root"]) if query["root"] else None
        if "pages" in query:
            pdf = import_module("ketrag_fast.readers.pdf.pages")  # by name, as all readers
            file = SourceFile(path, path.name, root=root, ocr=query["ocr"])
            _write(replies, pdf.pages_reply(file, range(*query["pages"])))
            continue
        file = SourceFile(path, query["id"], root=root, **query["options"])
        for item in _items(file, query, megabytes, no_memory):
            _write(replies, _reply(item))
        _write(replies, {"end": True})


def _watched(requests: IO[bytes]) -> Iterator[bytes]:
    """Yield requests. The end of the input ends this process, also in the middle of a request."""
    from queue import SimpleQueue

    lines: SimpleQueue[bytes] = SimpleQueue()

    def watch() -> None:
        for line in requests:
            lines.put(line)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    while True:
        yield lines.get()


def _reply(item: Item) -> Row | dict[str, Any]:
    if isinstance(item, Failure):
        return {"failure": [item.document, item.code, item.message]}
    try:
        return row_of(item)
    except (TypeError, ValueError, RecursionError) as error:
        return {"failure": [item.id, "document", f"its metadata cannot be stored: {error}"]}


def _write(replies: IO[bytes], data: Any) -> None:
    replies.write(json.dumps(data).encode("ascii") + b"\n")
    replies.flush()


def main() -> None:
    """Serve requests. Replies go to the original output; what libraries print is discarded."""
    megabytes = int(sys.argv[1])
    requests: Iterable[bytes] = sys.stdin.buffer if megabytes else _watched(sys.stdin.buffer)
    if megabytes:
        from ketrag_fast.readers.parser_memory import limit_memory

        limit_memory(megabytes)
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        serve(requests, replies, megabytes)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the parent has ended
    except MemoryError:
        os._exit(_NO_MEMORY)


if __name__ == "__main__":
    main()
