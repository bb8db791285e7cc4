"""Connections to one address, on httpcore (the transport of httpx), with a check during every wait.

Timeouts of httpcore bound single socket operations: a peer that sends one byte now and then blocks it
forever, and nothing can be cancelled during a name lookup, a connect or a TLS handshake. It passes the
timeouts of a request to its network backend unchanged, so here they carry the check (`RequestClock`), and the
backend waits in slices. httpx itself has no way to set the backend, and adds redirects, cookies, proxies and
`.netrc`, which would all have to be switched off.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cache, partial
from typing import Any, Final, TypeVar

import httpcore

from ketrag_fast.models.http.endpoints import Address, is_local_name
from ketrag_fast.secrets import Key, redact_all

Stopped = Callable[[], object]
"""Raises to cancel the work; called several times a second while waiting."""
SLICE: Final = 0.1
"""Seconds of one wait."""
IDLE_SECONDS: Final = 30.0
"""A connection unused for longer is closed: routers forget silent connections, and then a request hangs."""
LARGEST: Final = 16
"""Idle connections kept; more than the requests of one model at a time would never be used."""
FAULTS: Final = (OSError, httpcore.ProtocolError)
"""Exceptions of a failing connection; their messages may quote the peer."""
_PIECE: Final = 1 << 16
_CONNECTING: Final = 30.0
"""Timeout for connecting to one address, in seconds."""
_Selector: Final[type[Any]] = getattr(selectors, "PollSelector", selectors.SelectSelector)
"""`poll` has no limit on file descriptors."""
T = TypeVar("T")


def _redact_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact_all(record.getMessage()), ()
    return True


logging.getLogger("httpcore.http11").addFilter(_redact_record)  # it logs the heads of replies


class RequestClock(float):
    """The timeout of a request in seconds, from now until the last byte."""

    _late: str

    def __new__(
        cls, seconds: float, stopped: Stopped, late: str = "no complete reply after {:g} s"
    ) -> RequestClock:
        """Start the clock; `late` is the message when the time is over."""
        clock = super().__new__(cls, seconds)
        clock._late = late.format(seconds)
        clock.restart(seconds, stopped)
        return clock

    def restart(self, seconds: float, stopped: Stopped) -> None:
        """Expire `seconds` from now."""
        self._end, self._stopped = time.monotonic() + seconds, stopped

    def check(self) -> None:
        """Raise TimeoutError if the time is over, and what `stopped` raises."""
        self._stopped()
        if time.monotonic() > self._end:
            raise TimeoutError(self._late)


class _StaleError(ConnectionError):
    """The server reset an idle connection just as the request left, so it has not processed the request."""


class Connections:
    """A pool of connections to one address for all threads, also those of a forked child."""

    def __init__(self, place: Address) -> None:
        self.place = place
        self._open()

    def ask(
        self, method: str, path: str, key: Key | None, body: bytes, clock: RequestClock
    ) -> httpcore.Response:
        """Send a request and return the reply, whose head was read; it must be closed.

        Raises `FAULTS`, and what the clock raises.
        """
        place = self.place
        headers: list[tuple[str, str | bytes]] = [
            ("Host", place.netloc),
            ("Accept", "application/json, text/event-stream, */*"),
            ("Accept-Encoding", "identity"),
        ]
        if body:
            headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        if key is not None:
            headers.append(("Authorization", key.header()))
        request = httpcore.Request(
            method,
            httpcore.URL(scheme=place.scheme, host=place.host, port=place.port, target=path),
            headers=headers,
            content=body,
            extensions={"timeout": dict.fromkeys(("connect", "read", "write"), clock)},
        )
        if self._process != os.getpid():
            self._open()  # connections belong to the parent, and a lost thread may hold a lock
        while True:
            try:
                reply = self._pool.handle_request(request)
            except _StaleError:  # that connection is closed now, so the loop ends with a new one
                continue
            if not reply.extensions["network_stream"].get_extra_info("is_unsent"):
                return reply
            reply.close()  # an unrequested reply is left over: close the connection

    def _open(self) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=_tls() if self.place.scheme == "https" else None,
            max_connections=None,
            max_keepalive_connections=LARGEST,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Backend(),
        )
        self._process = os.getpid()

    def close(self) -> None:
        """Close all connections; requests in progress fail."""
        if self._process == os.getpid():
            self._pool.close()


def reason_phrase(reply: httpcore.Response) -> str:
    """Return the text after the status of a reply, with keys redacted."""
    return " ".join(redact_all(reply.extensions["reason_phrase"].decode("latin-1")).split())[:80]


@cache
def _tls() -> ssl.SSLContext:
    """Return the shared TLS context; loading the system certificates takes tens of milliseconds."""
    return ssl.create_default_context()


def dial(host: str, port: int, clock: RequestClock) -> socket.socket:
    """Return a connection. Raises OSError if it fails, and what the clock raises.

    It is opened on a thread, because a name lookup cannot be interrupted.
    """
    attempt: Future[socket.socket] = Future()

    def run() -> None:
        try:
            attempt.set_result(_dial(host, port))
        except UnicodeError:
            attempt.set_exception(OSError("invalid host name"))
        except BaseException as error:  # noqa: BLE001 - raised below
            attempt.set_exception(error)

    threading.Thread(target=run, name="ketrag-connect", daemon=True).start()
    try:
        while not wait([attempt], SLICE).done:
            clock.check()
    except BaseException:
        attempt.add_done_callback(_hang_up)
        raise
    return attempt.result()


class _Backend(httpcore.NetworkBackend):
    """Opens the connections of httpcore."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore.NetworkStream:
        assert isinstance(timeout, RequestClock)  # noqa: S101 - see `Connections.ask`
        return _SlicedSocket(dial(host, port, timeout))


def _hang_up(attempt: Future[socket.socket]) -> None:
    if attempt.exception() is None:
        attempt.result().close()


def _dial(host: str, port: int) -> socket.socket:
    """Connect to one address of a host after the other; loopback names are not looked up."""
    names = ["127.0.0.1", "::1"]
    if not is_local_name(host):
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        names = [str(entry[4][0]) for entry in entries]
    faults = []
    for name in dict.fromkeys(names):
        try:
            return socket.create_connection((name, port), _CONNECTING)
        except OSError as error:
            faults.append(error)
    raise faults[0]


class _SlicedSocket(httpcore.NetworkStream):
    """A connected socket that is read and written in slices."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(SLICE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._lock = threading.Lock()  # no thread closes the socket while another one waits for it
        self._closed = False
        self._request = bytearray()
        self._requests = 0
        self._is_answered = self._is_reused = False

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Buffer bytes until the reply is read, so that head and body are sent together."""
        self._request += buffer
        self._requests += 1

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        fault: ConnectionError | None = None
        try:
            self._send(timeout)
        except ConnectionError as error:  # a server may reject a request without reading all of it
            fault = error
        data = b""
        try:
            data = self._wait(partial(self._sock.recv, max_bytes), timeout)
        except ConnectionError as error:
            fault = fault or error
        if not data and fault is not None:
            raise _StaleError("an idle connection was reset") if self._is_reused else fault
        self._is_answered, self._is_reused = True, False
        return data

    def _send(self, timeout: float | None) -> None:
        if not self._request:
            return
        data, sent = memoryview(self._request), 0
        self._request, self._is_reused = bytearray(), self._is_answered
        while sent < len(data):
            sent += self._wait(partial(self._sock.send, data[sent : sent + _PIECE]), timeout)

    def _wait(self, step: Callable[[], T], timeout: float | None) -> T:
        assert isinstance(timeout, RequestClock)  # noqa: S101 - see `Connections.ask`
        while True:
            timeout.check()
            with self._lock:
                if self._closed:
                    raise OSError("the connection was closed")
                try:
                    return step()
                except TimeoutError:
                    continue

    def close(self) -> None:
        self._closed = True
        with self._lock:
            self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            self._sock = sock = ssl_context.wrap_socket(
                self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._wait(sock.do_handshake, timeout)
        except BaseException:
            self.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return whether an idle connection has anything to read (its end, or an unrequested reply), or
        whether a request is still held back.
        """
        if info == "is_unsent":
            return bool(self._request)
        before = self._requests
        if info != "is_readable" or not self._lock.acquire(blocking=False):
            return None  # another thread has just taken the connection
        try:
            if self._closed:
                return True
            with _Selector() as selector:
                selector.register(self._sock, selectors.EVENT_READ)
                return bool(selector.select(0)) and before == self._requests
        finally:
            self._lock.release()
