"""Several workers on one address: processes that share mapped files; a worker that dies is replaced."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ketrag_fast.apps.server.metrics import FOLDER, folder, mark_dead
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import log
from ketrag_fast.apps.server.worker import READY, UNABLE
from ketrag_fast.errors import KetragError

_SOON: Final = 5.0
"""A worker that ran for less time is restarted after a pause."""
_PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(eq=False)
class _Worker:
    listening: socket.socket
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    early: int = 0
    again: float = 0.0
    """When to start it."""
    ready: bool = False


class Supervisor:
    """Starts workers, replaces dead ones, stops all."""

    def __init__(
        self,
        options: ServerOptions,
        token: str | None,
        sockets: list[socket.socket],
        on_start: Callable[[], object] = lambda: None,
    ) -> None:
        self._options = options
        self._token = token
        self._workers = [_Worker(one) for one in sockets]
        self._on_start = on_start
        self._stop = False
        self._is_up = False

    def run(self) -> None:
        """Run until SIGTERM or Ctrl-C. Raises KetragError if a worker cannot start."""
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            with folder() as counted, self._workers_running(counted):
                while not self._stop:
                    self._look(counted)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def _workers_running(self, counted: str) -> Iterator[None]:
        self._selector = selectors.DefaultSelector()
        try:
            for worker in self._workers:
                self._start(worker, counted)
            yield
        finally:
            self._end()
            self._selector.close()

    def _on_signal(self, *_: Any) -> None:
        self._stop = True

    def _start(self, worker: _Worker, counted: str) -> None:
        descriptor = worker.listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "ketrag_fast.apps.server.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(descriptor,),
            env={**os.environ, FOLDER: counted},
            start_new_session=True,
        )
        message = {"options": self._options.to_json(), "token": self._token, "socket": descriptor}
        assert process.stdin is not None  # noqa: S101 - stdin=PIPE
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        worker.process, worker.started, worker.ready = process, time.monotonic(), False
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    def _look(self, counted: str) -> None:
        """Wait briefly for output or the end of a worker, and handle it."""
        for key, _ in self._selector.select(0.2):
            worker: _Worker = key.data
            line = key.fileobj.readline()  # type: ignore[union-attr]
            if line.strip() == READY.encode():
                worker.ready = True
            elif line:
                self._failed(worker, line)
            else:
                self._gone(worker, counted)
        if not self._is_up and all(worker.ready for worker in self._workers):
            self._is_up = True
            self._on_start()
        now = time.monotonic()
        for worker in self._workers:
            if worker.process is None and worker.again <= now and not self._stop:
                self._start(worker, counted)

    def _failed(self, worker: _Worker, line: bytes) -> None:
        """Handle a worker that cannot start. Before the service is up, raise its error."""
        data = json.loads(line)
        if not self._is_up:
            error = KetragError(data["message"], hint=data["hint"])
            error.code = data["code"]
            raise error
        log.error("a worker cannot start: %s", data["message"])

    def _gone(self, worker: _Worker, counted: str) -> None:
        process = worker.process
        assert process is not None  # noqa: S101 - its pipe was selected
        self._selector.unregister(process.stdout)  # type: ignore[arg-type]
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        mark_dead(process.pid, counted)
        worker.process = None
        if self._stop:
            return
        lived = time.monotonic() - worker.started
        worker.early = worker.early + 1 if lived < _SOON or code == UNABLE else 0
        pause = _PAUSES[min(worker.early, len(_PAUSES) - 1)]
        worker.again = time.monotonic() + pause
        log.error("worker %d ended with %d and is replaced", process.pid, code)

    def _end(self) -> None:
        """Ask all workers to stop, and kill those that do not."""
        alive = [worker.process for worker in self._workers if worker.process is not None]
        for process in alive:
            with contextlib.suppress(OSError):
                process.terminate()
        until = time.monotonic() + self._options.graceful_seconds + _SOON
        for process in alive:
            try:
                process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
