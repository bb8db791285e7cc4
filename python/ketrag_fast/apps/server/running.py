"""One worker: serves the application on a socket until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import uvicorn
from starlette.applications import Starlette

from ketrag_fast.apps.server.app import create_app
from ketrag_fast.apps.server.endpoints import check_fields
from ketrag_fast.apps.server.guard import HEADERS
from ketrag_fast.apps.server.metrics import counts_file
from ketrag_fast.apps.server.options import ServerOptions, is_local
from ketrag_fast.apps.server.replies import JSON, Problem, busy, error_json, json_bytes, log, stopping
from ketrag_fast.apps.server.retrieval import LONGEST, fields_of, topics
from ketrag_fast.apps.server.service import BATCH, Service
from ketrag_fast.apps.server.shards import ShardCalls
from ketrag_fast.apps.server.users import User, check_private
from ketrag_fast.errors import ConfigError, KetragError
from ketrag_fast.query.core_plans import Front, Plan

_BACKLOG: Final = 2048
_FOREVER: Final = 10**8
"""Seconds that the application keeps idle connections open; the front closes them."""
_SOON: Final = 1.0
_LAST: Final = 6.0
"""Seconds to wait for the last replies; longer than the front waits for them."""
_LEAST_TOKEN: Final = 16
_LONGEST_TOKEN: Final = 4096
VARIABLE: Final = "KETRAG_TOKEN"


def token_of(file: str | None, host: str, *, has_users: bool = False) -> str | None:
    """Return the token from its file, else from the environment.

    Raises ConfigError if the service is reachable from other machines and the token is missing or can be
    guessed.
    """
    token = os.environ.get(VARIABLE)
    if file is not None:
        check_private(file, "--token-file")
        try:
            with Path(file).open("rb") as stream:
                token = stream.read(_LONGEST_TOKEN + 1).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {file}: cannot be read: {error}") from None
    if has_users:
        if file is not None:
            raise ConfigError("--users contradicts --token-file", hint="leave out one of them")
        return None
    if not token:
        if not is_local(host):
            raise ConfigError(
                f"--host {host} is reachable from other machines and needs a token",
                hint=f"use --users FILE, or --token-file FILE with a token, or set ${VARIABLE}",
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
    """The application's server behind the front, which holds the connections of clients."""

    def __init__(
        self, config: uvicorn.Config, listening: socket.socket, on_start: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._listening = listening
        self._on_start = on_start
        self._front: Front | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then the front, and report that both are ready."""
        await super().startup(sockets)
        if not self.started:
            return
        service = self._service
        host, port = self.servers[0].sockets[0].getsockname()[:2] if self.config.uds is None else ("", 0)
        self._front = front = start_front(service, self._listening, self.config.uds or f"{host}:{port}")
        service.indexes.on_change = front.forget
        service.on_users = lambda: front.set_holders(service.holders())
        service.waiting_in_front = front.waiting
        service.metrics.front = front.counts
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish running requests; stop those that take too long."""
        service, front = self._service, self._front
        service.stopping = True
        if front is not None:
            front.stop()
            if not await asyncio.to_thread(front.join, float(service.options.graceful_seconds)):
                front.abort()
                self.config.timeout_graceful_shutdown = 0
                await asyncio.to_thread(front.join, _SOON)  # the application replies to what the core stopped
            counted = front.counts()
            service.metrics.front = lambda: counted
            service.waiting_in_front = lambda: 0
            service.indexes.on_change = service.on_users = lambda: None
        await super().shutdown(sockets)
        if front is not None:
            await asyncio.to_thread(front.join, _LAST)
            self._front = None  # it refers to the service

    @property
    def _service(self) -> Service:
        return self.config.app.state.service  # type: ignore[union-attr, no-any-return]


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
    """Serve the application that `make` creates until SIGTERM or Ctrl-C. `watched` receives the server, to
    stop it with `should_exit`.

    Closes `listening`.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    app = make(options, token)
    _log_notes(app.state.service)
    # The application listens where no other user can connect.
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as private:
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            uds=str(Path(private) / "app") if hasattr(socket, "AF_UNIX") else None,
            http="httptools",
            ws="none",
            lifespan="on",
            loop="uvloop" if sys.platform != "win32" else "asyncio",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_FOREVER,
            timeout_graceful_shutdown=int(options.graceful_seconds),
        )
        server = _Server(config, listening, on_start)
        if threading.current_thread() is threading.main_thread():
            # When all requests are done uvicorn raises the signal again; it must only end this function.
            signal.signal(signal.SIGTERM, _raise_interrupt)
        if watched is not None:
            watched(server)
        try:
            server.run()
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


class _Notes(logging.Handler):
    """Writes messages of the service as lines of its log of requests."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, with the traceback of an internal error."""
        self._service.log.note(record.levelname.lower(), self.format(record))


def _log_notes(service: Service) -> None:
    """Write messages of the service to the log of requests if it has a line for each request."""
    if service.options.log is not None:
        notes = [one for one in log.handlers if isinstance(one, _Notes)]
        for one in notes:
            log.removeHandler(one)
        log.addHandler(_Notes(service))
        log.propagate = False
        log.setLevel(logging.INFO)


_LONGEST_WAIT: Final = 60


def start_front(service: Service, listening: socket.socket, application: str) -> Front:
    """Return a front that owns a listening socket and passes requests to the address `application`."""
    options = service.options
    local = ("localhost", "127.0.0.1", "::1")
    any_host = service.accepts_any_host
    crowded = Problem(429, "busy", "too many connections", headers={"Retry-After": "1"})
    broken = Problem(400, "bad_request", "the body of the request is malformed or incomplete")
    return Front(
        listening.detach(),
        application,
        _Planner(service),
        workers=options.concurrency,
        connections=options.connections,
        queue=options.queue,
        batch=options.batch or BATCH,
        cache=options.cache,
        body=options.body,
        question=LONGEST,
        deadline=options.deadline,
        read=options.read_seconds,
        idle=options.idle_seconds,
        hosts=None if any_host else [*local, *options.hosts, options.host],
        holders=service.holders(),
        headers=_headers(),
        busy=[_whole(busy(seconds)) for seconds in range(_LONGEST_WAIT)],
        crowded=_whole(crowded),
        broken=_whole(broken),
        stopping=_whole(stopping()),
        counts=counts_file(),
        log=service.log,
        call=ShardCalls(service, asyncio.get_running_loop()),
    )


class _Planner:
    """Decides, on threads of the front, how the core answers a request."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._shape = topics(service)

    def __call__(self, fields: str, seconds: float) -> Plan | None:
        """Return a plan by which the core answers requests with these fields. None if the application must
        answer, or if planning takes longer than `seconds`, as the first filter of an index may: it reads all
        metadata.
        """
        if not self._service.options.front:
            return None
        try:
            given = json.loads(fields)
            user = User(allow=given.pop("allow", ""))
            values = check_fields(given, self._shape, "")
            index = self._service.indexes.seen_by(user).find(values.get("index")).index
            options = fields_of({**values, "deadline": seconds})
            return index.inspect.prepared(json_bytes, **options)
        except KetragError:  # the application replies with it
            return None
        except Exception:  # noqa: BLE001 - the application meets it again and replies
            log.exception("a request could not be planned")
            return None


def _headers() -> list[tuple[str, str]]:
    return [("content-type", JSON), *((name.decode(), value.decode()) for name, value in HEADERS)]


def _whole(problem: Problem) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return the whole HTTP reply that the front sends by itself."""
    headers = [*((name.lower(), value) for name, value in problem.headers.items()), *_headers()]
    return problem.status, headers, json_bytes(error_json(problem))
