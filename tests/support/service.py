"""The service running on loopback: in a thread of this process, or as the command."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.process import start
from tests.support.parts import part

part("starlette", "server")
part("uvicorn", "server")
part("prometheus_client", "server")
httpx = part("httpx", "checks")

from ketrag_fast.apps.server.app import create_app  # noqa: E402
from ketrag_fast.apps.server.options import ServerOptions  # noqa: E402
from ketrag_fast.apps.server.running import listen_sockets, serve  # noqa: E402


class Running:
    """Where it listens, and the application's service."""

    def __init__(self, port: int, server: Any) -> None:
        self.port = port
        self.server = server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def service(self) -> Any:
        return self.server.config.app.state.service

    def client(self, **options: Any) -> Any:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **options)


@contextlib.contextmanager
def running(
    index: Path, *, token: str | None = None, make: Any = create_app, **options: Any
) -> Iterator[Running]:
    """In a thread. Other options are those of `ServerOptions`."""
    given = ServerOptions(
        **{"indexes": {"ketrag": str(index)}, "refresh_seconds": 0.05, "graceful_seconds": 5, **options}
    )
    listening = listen_sockets("127.0.0.1", 0, 1)[0]
    port = listening.getsockname()[1]
    ready = threading.Event()
    servers: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            serve(given, token, listening, on_start=ready.set, watched=servers.append, make=make)
        except BaseException as error:  # noqa: BLE001 - the test says it
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    if failed:
        raise failed[0]
    try:
        yield Running(port, servers[0])
    finally:
        servers[0].should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the service did not stop"


@contextlib.contextmanager
def command(*argv: str, cwd: Path, wait: float = 60, **variables: str) -> Iterator[tuple[int, Any]]:
    """`ketrag serve --port 0 ARGV...` as a process: its port, and the process."""
    child = start("serve", "--port", "0", *argv, cwd=cwd, variables=variables)
    timer = threading.Timer(wait, child.kill)
    timer.start()
    said = []
    try:
        assert child.stderr is not None
        while True:
            line = child.stderr.readline()
            said.append(line)
            if " at http://" in line:
                break
            assert line, f"the service ended: {said}"
        timer.cancel()
        yield int(line.strip().rpartition(":")[2]), child
    finally:
        timer.cancel()
        child.terminate()
        try:
            child.communicate(timeout=30)
        except Exception:
            child.kill()
            raise
