"""A connection that speaks HTTP/1.1 and checks the clock during every wait.

Why this is not httpx or urllib3: their timeouts bound a single socket operation. A peer that sends one byte
now and then (in headers, chunk sizes or comments of a stream) blocks such a client forever, and neither can
be cancelled during a name lookup, a connect or a TLS handshake. Here every wait is a short slice, and `look`
is called between slices; it raises when the deadline has passed or the work was cancelled. h11, the protocol
engine of httpx, parses and writes the bytes. Names are looked up and connections opened in a thread that can
be abandoned. The API key never becomes a local variable of a stack frame.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Final

import h11

from ketrag_fast.models.http.addresses import Address, is_local_name
from ketrag_fast.secrets import Key, redact_all

Look = Callable[[], None]
"""Raises to cancel the work; called between slices of waiting and between pieces of a reply."""

SLICE: Final = 0.1
"""Seconds of one wait."""
_HEAD_BYTES: Final = 1 << 16
_PIECE: Final = 1 << 16
_LEFTOVERS: Final = 8
"""Number of events after which a reply that should be complete, and its connection, are dropped."""
_CONNECTING: Final = 30.0
"""Timeout for connecting to one address, in seconds."""
FAULTS: Final = (OSError, h11.ProtocolError)
"""Exceptions of a failing connection; their messages may quote the peer."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a reply, with keys redacted."""

    status: int
    reason: str
    kind: str
    encoding: str
    retry_after: str


class Wire:
    """Connects at once. Not thread safe. Raises `FAULTS`, and what `look` raises."""

    def __init__(self, place: Address, look: Look) -> None:
        self._place = place
        self._sock = _connect(place.host, place.port, look)
        try:
            self._sock.settimeout(SLICE)
            if place.scheme == "https":
                self._sock = _wrap_tls(self._sock, place.host, look)
        except BaseException:
            self.close()
            raise
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self._process = os.getpid()
        self._silent = True
        self.unprocessed = False
        """Whether the last request failed before the server can have processed it: it was not sent
        completely, or the server reset the connection, which means unread bytes, before any byte of a reply.
        A connection that the server closed in an orderly way may have processed it.
        """

    def close(self) -> None:
        """Close the socket."""
        with suppress(OSError):
            self._sock.close()

    def is_reusable(self) -> bool:
        """Whether a later request may be sent on this connection, once `ready` says so. False for one that
        the peer will close, that is broken, or that another process opened (after a fork).
        """
        if self._process != os.getpid() or self._state.our_state is not h11.DONE:
            return False
        return self._state.their_state in (h11.DONE, h11.SEND_BODY)

    def ready(self) -> bool:
        """Whether another request can be sent now: the last reply was read to its end, and the peer has
        neither closed its side nor sent anything else. Does not wait.
        """
        try:
            if self._state.their_state is h11.SEND_BODY:
                self._drain()
            if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
                self._state.start_next_cycle()
            if self._state.our_state is not h11.IDLE or self._state.trailing_data[0]:
                return False
            return not self._is_readable()
        except (*FAULTS, ValueError):
            return False

    def ask(
        self, method: str, path: str, kind: str | None, accept: str, key: Key | None, body: bytes, look: Look
    ) -> Head:
        """Send a request and return the head of the reply. Head and body leave in one piece: a body sent
        after a small head would wait for the delayed acknowledgement of the server's system.
        """
        self.unprocessed, self._silent = False, True
        broken: OSError | None = None
        try:
            # The bytes hold the key, so no frame has them as a variable.
            self._send(memoryview(self._request(method, path, kind, accept, key, body)), look)
        except ConnectionError as error:  # a server may reject a request without reading all of it
            broken = error
        try:
            return self._head(look)
        except FAULTS as error:
            reset = broken is not None or isinstance(error, ConnectionResetError)
            self.unprocessed = reset and self._silent
            if broken is not None:
                raise broken from None
            raise

    def _request(
        self, method: str, path: str, kind: str | None, accept: str, key: Key | None, body: bytes
    ) -> bytes:
        return b"".join(
            (
                self._state.send(
                    h11.Request(
                        method=method, target=path, headers=self._headers(kind, accept, key, len(body))
                    )
                )
                or b"",
                (self._state.send(h11.Data(data=body)) or b"") if body else b"",
                self._state.send(h11.EndOfMessage()) or b"",
            )
        )

    def body(self, look: Look) -> Iterator[bytes]:
        """Yield the content of the reply as it arrives. Raises RemoteProtocolError if it ends early."""
        while True:
            event = self._event(look)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)) or event is h11.PAUSED:
                return

    def _headers(
        self, kind: str | None, accept: str, key: Key | None, size: int
    ) -> list[tuple[bytes, bytes]]:
        found = [
            (b"Host", self._place.netloc.encode("ascii")),
            (b"Accept", accept.encode("ascii")),
            (b"Accept-Encoding", b"identity"),
        ]
        if kind is not None:
            found += [(b"Content-Type", kind.encode("ascii")), (b"Content-Length", b"%d" % size)]
        if key is not None:
            found.append((b"Authorization", key.header()))
        return found

    def _head(self, look: Look) -> Head:
        while not isinstance(event := self._event(look), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise ConnectionAbortedError("the connection ended before a reply")
        named = {bytes(name): bytes(value).decode("latin-1") for name, value in event.headers}
        return Head(
            event.status_code,
            redact_all(bytes(event.reason).decode("latin-1")),
            redact_all(named.get(b"content-type", "").split(";")[0].strip().lower()),
            redact_all(named.get(b"content-encoding", "identity").strip().lower()),
            redact_all(named.get(b"retry-after", "")),
        )

    def _event(self, look: Look) -> object:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(self._received(look))
        return event

    def _received(self, look: Look) -> bytes:
        while True:
            look()
            try:
                data = self._sock.recv(_PIECE)
            except TimeoutError:
                continue
            self._silent = self._silent and not data
            return data

    def _drain(self) -> None:
        """Read the part of the reply's end that has arrived; after `[DONE]` it is short."""
        for _ in range(_LEFTOVERS):
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                if not self._is_readable():
                    return
                self._state.receive_data(self._sock.recv(_PIECE))
            elif not isinstance(event, h11.Data):
                return

    def _is_readable(self) -> bool:
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        if sys.platform != "win32":  # select cannot watch file descriptors above 1,023
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([self._sock], [], [], 0)[0])

    def _send(self, data: memoryview, look: Look) -> None:
        while data:
            look()
            try:
                sent = self._sock.send(data[:_PIECE])
            except TimeoutError:
                continue
            data = data[sent:]


def _wrap_tls(sock: socket.socket, host: str, look: Look) -> ssl.SSLSocket:
    wrapped = _tls().wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    try:
        while True:
            look()
            try:
                wrapped.do_handshake()
            except TimeoutError:
                continue
            return wrapped
    except BaseException:
        wrapped.close()
        raise


@cache
def _tls() -> ssl.SSLContext:
    """Return the shared TLS context; loading the system certificates takes tens of milliseconds."""
    return ssl.create_default_context()


def _connect(host: str, port: int, look: Look) -> socket.socket:
    attempt = _Attempt(host, port)
    threading.Thread(target=attempt.run, name="ketrag-connect", daemon=True).start()
    try:
        while not attempt.done.wait(SLICE):
            look()
    except BaseException:
        attempt.leave()
        raise
    if attempt.sock is None:
        raise attempt.error or OSError("no connection was made")
    return attempt.sock


class _Attempt:
    """A connection attempt in a thread."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._lock = threading.Lock()
        self._left = False
        self.done = threading.Event()
        self.sock: socket.socket | None = None
        self.error: OSError | None = None

    def run(self) -> None:
        """Try one address after the other (in a separate thread)."""
        try:
            for name in _addresses(self._host, self._port):
                if self._left:
                    return
                try:
                    made = socket.create_connection((name, self._port), _CONNECTING)
                    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                except OSError as error:
                    self.error = self.error or error
                    continue
                with self._lock:
                    if self._left:
                        made.close()
                    self.sock = made
                return
        except (OSError, UnicodeError) as error:
            self.error = error if isinstance(error, OSError) else OSError("invalid host name")
        finally:
            self.done.set()

    def leave(self) -> None:
        """Abandon the attempt."""
        with self._lock:
            self._left = True
            if self.sock is not None:
                self.sock.close()


def _addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host; loopback names are not looked up."""
    if is_local_name(host):
        return ["127.0.0.1", "::1"]
    try:
        return [str(ip_address(host))]
    except ValueError:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))
