"""One worker: the application on a socket, until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import uvicorn
from starlette.applications import Starlette

from ketrag_fast.apps.server.app import create_app
from ketrag_fast.apps.server.connection import LimitedConnection, create_protocol
from ketrag_fast.apps.server.front import adopt_options, start_front
from ketrag_fast.apps.server.hosts import is_local
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.service import Service
from ketrag_fast.errors import ConfigError, KetragError

if TYPE_CHECKING:
    from ketrag_fast.index.front import Front

_BACKLOG: Final = 2048
_LEAST_TOKEN: Final = 16
_LONGEST_TOKEN: Final = 4096
VARIABLE: Final = "KETRAG_TOKEN"


def token_of(file: str | None, host: str) -> str | None:
    """Return the token from its file, else from the environment.

    Raises ConfigError if the service is reachable from other machines and the token is missing or can be
    guessed.
    """
    token = os.environ.get(VARIABLE)
    if file is not None:
        try:
            with Path(file).open("rb") as stream:
                token = stream.read(_LONGEST_TOKEN + 1).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {file}: cannot be read: {error}") from None
    if not token:
        if not is_local(host):
            raise ConfigError(
                f"--host {host} is reachable from other machines and needs a token",
                hint=f"write a token to a file and use --token-file FILE, or set ${VARIABLE}",
            )
        if file is not None:
            raise ConfigError(f"--token-file {file}: the file is empty")
        return None
    if not _LEAST_TOKEN <= len(token) <= _LONGEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"the token must have {_LEAST_TOKEN} to {_LONGEST_TOKEN} printable ASCII characters",
            hint="for example: openssl rand -hex 32 > token",
        )
    return token


def listen_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Return `count` sockets at one address, one for each worker; the system distributes connections.

    If the system cannot do that, all are the same socket.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sockets = [_socket(family, host, port, share=count > 1)]
        port = sockets[0].getsockname()[1]
        for _ in range(count - 1):
            if hasattr(socket, "SO_REUSEPORT"):
                sockets.append(_socket(family, host, port, share=True))
            else:
                sockets.append(sockets[0])
    except OSError as error:
        hint = None
        if error.errno == errno.EADDRINUSE:
            hint = "another program uses it: choose another --port, or 0 for any"
        raise ConfigError(
            f"cannot listen at {host} port {port}: {error.strerror or error}", hint=hint
        ) from None
    return sockets


def _socket(family: socket.AddressFamily, host: str, port: int, *, share: bool) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share and hasattr(socket, "SO_REUSEPORT"):
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


class _Server(uvicorn.Server):
    """A server that reports when it is ready."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._front: Front | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests: in the core's front, or here if there is none."""
        service = self._service
        front = start_front(service, sockets[0]) if sockets else None
        await super().startup([] if front is not None else sockets)
        if self.started and front is not None:
            self._front = front
            service.indexes.on_change = front.forget
            service.waiting_in_front = front.waiting
            service.metrics.front = front.counts
            asyncio.get_running_loop().add_reader(front.fileno(), self._adopt)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish running requests; refuse new ones on open connections."""
        service, front = self._service, self._front
        service.stopping = True
        if front is not None:
            front.stop(float(service.options.graceful_seconds))
            await asyncio.to_thread(front.join)
            self._adopt()
            asyncio.get_running_loop().remove_reader(front.fileno())
            counted = front.counts()
            service.metrics.front = lambda: counted
            service.waiting_in_front = lambda: 0
            service.indexes.on_change = lambda: None
            self._front = None  # it refers to the service
        await super().shutdown(sockets)

    @property
    def _service(self) -> Service:
        return self.config.app.state.service  # type: ignore[union-attr, no-any-return]

    @property
    def _create_protocol(self) -> Callable[..., LimitedConnection]:
        return self.config.http_protocol_class  # type: ignore[return-value]

    def _adopt(self) -> None:
        """Take over the connections that the front hands over."""
        loop, front, create = asyncio.get_running_loop(), self._front, self._create_protocol
        if front is None:
            return
        for handed in front.take():
            adopted, known = adopt_options(handed, front)
            protocol = create(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            protocol.adopted = known
            task = loop.create_task(_connect(adopted, protocol))
            self.server_state.tasks.add(task)
            task.add_done_callback(self.server_state.tasks.discard)


async def _connect(adopted: socket.socket, protocol: LimitedConnection) -> None:
    """Have a protocol serve a connected socket."""
    try:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, adopted)
    except OSError:  # the client is gone
        adopted.close()
        if protocol.adopted is not None:
            protocol.adopted.front.closed()


def _raise_interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def serve(
    options: ServerOptions,
    token: str | None,
    listening: socket.socket,
    on_start: Callable[[], object] = lambda: None,
    watched: Callable[[uvicorn.Server], object] | None = None,
    make: Callable[[ServerOptions, str | None], Starlette] = create_app,
) -> None:
    """Serve the application of `make` until SIGTERM or Ctrl-C. `watched` may stop it with `should_exit`."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    app = make(options, token)
    config = uvicorn.Config(
        app,
        http=create_protocol(options),
        ws="none",
        lifespan="on",
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=int(options.idle_seconds),
        timeout_graceful_shutdown=int(options.graceful_seconds),
    )
    server = _Server(config, on_start)
    if threading.current_thread() is threading.main_thread():
        # When all requests are done uvicorn raises the signal again; it must only end this function.
        signal.signal(signal.SIGTERM, _raise_interrupt)
    if watched is not None:
        watched(server)
    try:
        server.run([listening])
    except KeyboardInterrupt:
        pass
    except asyncio.CancelledError:
        pass
    if app.state.service.stuck and threading.current_thread() is threading.main_thread():
        logging.getLogger("ketrag_fast.apps.server").warning("stopped while an answer was still in progress")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # the interpreter would wait for these threads, possibly for minutes
    if not server.started:
        raise KetragError("the service could not start; see its log")
