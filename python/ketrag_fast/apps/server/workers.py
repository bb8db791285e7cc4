"""Several workers on one address: processes that share mapped files; a worker that dies is replaced.

A worker is `python -m ketrag_fast.apps.server.workers`. Its standard input has one line of JSON (options,
token, socket), and ends with the parent process; the worker stops then.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ketrag_fast.apps.server.metrics import FOLDER, folder, mark_dead
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.replies import log
from ketrag_fast.apps.server.running import serve
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import KetragError
from ketrag_fast.records import dataclass

_UNABLE: Final = 3
"""The exit code of a worker that cannot start and should not be retried."""
_READY: Final = b"ready\n"
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
    is_ready: bool = False


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
            with folder() as counted, selectors.DefaultSelector() as selector:
                try:
                    for worker in self._workers:
                        self._start(worker, selector, counted)
                    while not self._stop:
                        self._look(selector, counted)
                finally:
                    self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, *_: Any) -> None:
        self._stop = True

    def _start(self, worker: _Worker, selector: selectors.BaseSelector, counted: str) -> None:
        descriptor = worker.listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ketrag_fast.apps.server.workers"],
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
        worker.process, worker.started, worker.is_ready = process, time.monotonic(), False
        selector.register(process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    def _look(self, selector: selectors.BaseSelector, counted: str) -> None:
        """Wait briefly for output or the end of a worker, and handle it."""
        for key, _ in selector.select(0.2):
            worker: _Worker = key.data
            line = key.fileobj.readline()  # type: ignore[union-attr]
            if line == _READY:
                worker.is_ready = True
            elif line:
                self._failed(json.loads(line))
            else:
                selector.unregister(key.fileobj)
                self._gone(worker, counted)
        if not self._is_up and all(worker.is_ready for worker in self._workers):
            self._is_up = True
            self._on_start()
        now = time.monotonic()
        for worker in self._workers:
            if worker.process is None and worker.again <= now and not self._stop:
                self._start(worker, selector, counted)

    def _failed(self, data: dict[str, Any]) -> None:
        """Handle a worker that cannot start. Before the service is up, raise its error."""
        if not self._is_up:
            error = KetragError(data["message"], hint=data["hint"])
            error.code = data["code"]
            raise error
        log.error("a worker cannot start: %s", data["message"])

    def _gone(self, worker: _Worker, counted: str) -> None:
        process, worker.process = worker.process, None
        assert process is not None  # noqa: S101 - its pipe was selected
        code = process.wait()
        _close_pipes(process)
        mark_dead(process.pid, counted)
        if self._stop:
            return
        lived = time.monotonic() - worker.started
        worker.early = worker.early + 1 if lived < _SOON or code == _UNABLE else 0
        worker.again = time.monotonic() + _PAUSES[min(worker.early, len(_PAUSES) - 1)]
        log.error("worker %d ended with %d and is replaced", process.pid, code)

    def _end(self) -> None:
        """Ask all workers to stop, and kill those that do not."""
        alive = [worker.process for worker in self._workers if worker.process is not None]
        for process in alive:
            process.terminate()
        until = time.monotonic() + self._options.graceful_seconds + _SOON
        for process in alive:
            try:
                process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _close_pipes(process)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


def _work() -> int:
    """Serve as a worker until stopped; return the exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.INFO)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the parent decides
    message = json.loads(sys.stdin.readline())
    options = ServerOptions.from_json(message["options"])
    listening = socket.socket(fileno=message["socket"])
    try:
        with enough_memory():
            serve(options, message["token"], listening, lambda: _tell(_READY), _end_with_parent)
    except KetragError as error:
        data = {"code": error.code, "message": error.message, "hint": error.hint}
        _tell(json.dumps(data).encode() + b"\n")
        return _UNABLE
    return 0


def _tell(line: bytes) -> None:
    """Send a line to the parent process."""
    sys.stdout.buffer.write(line)
    sys.stdout.flush()


def _end_with_parent(server: Any) -> None:
    def watch() -> None:
        while os.read(0, 4096):
            pass
        server.should_exit = True

    threading.Thread(target=watch, daemon=True, name="ketrag-parent").start()


if __name__ == "__main__":
    sys.exit(_work())
