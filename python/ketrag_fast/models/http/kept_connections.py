"""Requests on connections that stay open, without an HTTP library, for services that get many small requests.

A query over several indexes makes three or four calls to each service, and httpcore takes most of the
caller's time for them. Only the usual case is handled here: a whole reply with status 200 and a
Content-Length over plain HTTP. For everything else, errors included, the methods return None, and the caller
sends the request again with `Client`. Use it only for requests that a service may answer twice."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections import deque
from typing import Final

from ketrag_fast.models.http.connections import IDLE_SECONDS, LARGEST, RequestClock, dial
from ketrag_fast.models.http.endpoints import Address
from ketrag_fast.records import dataclass
from ketrag_fast.secrets import Key, redact_bytes

_HEAD: Final = 65_536
"""Maximum bytes of the head of a reply."""
_PIECE: Final = 1 << 20
"""Maximum bytes read at once."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A whole reply with status 200. Keys are redacted in its content."""

    kind: str
    """Media type, in lower case."""
    content: bytes


class SentRequest:
    """A request whose reply is awaited until a time of the monotonic clock.

    Its connection is closed if nobody waits for the reply.
    """

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection: socket.socket | None = connection
        self.until = until

    def take(self) -> socket.socket:
        """Return the connection, which the caller closes. Raises OSError if it was taken before."""
        connection, self._connection = self._connection, None
        if connection is None:
            raise OSError("the reply was read before")
        return connection

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()


class KeptConnections:
    """Open connections to one address, for all threads. Each is used by one request at a time."""

    def __init__(self, place: Address, key: Key | None) -> None:
        self._place = place
        fields = [
            f"Host: {place.netloc}",
            "Accept: application/json, application/octet-stream",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
        ]
        self._fields = "\r\n".join(fields).encode("latin-1")
        if key is not None:
            self._fields += b"\r\nAuthorization: " + key.header()
        self._idle: deque[tuple[socket.socket, float]] = deque(maxlen=LARGEST)
        self._process = os.getpid()

    def send(self, path: str, body: bytes, seconds: float) -> SentRequest | None:
        """Send a POST request on an open connection. None if there is none, or it has been closed."""
        while (connection := self._take()) is not None:
            try:
                return self._write(connection, path, body, time.monotonic() + seconds)
            except OSError:
                connection.close()
        return None

    def send_on_new(self, path: str, body: bytes, seconds: float) -> SentRequest | None:
        """Send a POST request on a new connection. None over TLS, or if there is no connection."""
        if self._place.scheme != "http":
            return None
        until = time.monotonic() + seconds
        try:
            connection = dial(self._place.host, self._place.port, RequestClock(seconds, lambda: None))
        except OSError:
            return None
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._write(connection, path, body, until)
        except OSError:
            connection.close()
            return None

    def receive(self, sent: SentRequest, limit: int) -> RawReply | None:
        """Return the reply to a request. None if it is not a usual one of at most `limit` bytes."""
        connection, is_kept = sent.take(), False
        try:
            found = _read(connection, sent.until, limit)
            if found is None:
                return None
            reply, is_kept = found
            return reply
        except (OSError, ValueError):
            return None
        finally:
            if is_kept and self._process == os.getpid() and len(self._idle) < LARGEST:
                self._idle.append((connection, time.monotonic()))
            else:
                connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop()[0].close()

    def _take(self) -> socket.socket | None:
        """Return an idle connection that is still open."""
        if self._process != os.getpid():  # connections belong to the parent
            self._idle, self._process = deque(maxlen=LARGEST), os.getpid()
        while True:
            try:
                connection, used = self._idle.pop()
            except IndexError:
                return None
            if time.monotonic() - used < IDLE_SECONDS and not _is_readable(connection):
                return connection
            connection.close()  # it has ended, or has a reply without a request

    def _write(self, connection: socket.socket, path: str, body: bytes, until: float) -> SentRequest:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        head = b"POST %b HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % (path.encode("ascii"), self._fields, len(body)) + body)
        return SentRequest(connection, until)


def _is_readable(connection: socket.socket) -> bool:
    if sys.platform == "win32":  # has no poll, and no limit of select to small numbers
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _read(connection: socket.socket, until: float, limit: int) -> tuple[RawReply, bool] | None:
    """Return a reply, and whether the connection can be used again; None if it is not a usual one."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        piece = _piece(connection, until, _HEAD)
        data += piece
        if not piece or len(data) > _HEAD:
            return None
    first, *lines = data[:end].decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = fields.get("content-length", "")
    has_twice = len(fields) < len(lines)
    is_encoded = "transfer-encoding" in fields or "content-encoding" in fields
    if not version.startswith("HTTP/1.") or not length.isdecimal() or has_twice or is_encoded:
        return None
    size = int(length)
    if size > limit or rest[:3] != "200":
        return None
    parts, left = [data[end + 4 :]], size - len(data) + end + 4
    while left > 0:
        piece = _piece(connection, until, min(left, _PIECE))
        if not piece:
            return None
        parts.append(piece)
        left -= len(piece)
    content = b"".join(parts)
    kind = fields.get("content-type", "").split(";")[0].strip().lower()
    is_kept = left == 0 and version == "HTTP/1.1" and fields.get("connection", "").lower() != "close"
    return RawReply(kind, redact_bytes(content[:size])), is_kept


def _piece(connection: socket.socket, until: float, most: int) -> bytes:
    """Return the next bytes of a reply, and none at its end. Raises OSError after the time of the request.

    Bytes that have arrived are read even then: the caller may have waited for another service first.
    """
    connection.settimeout(max(until - time.monotonic(), 0.0))
    return connection.recv(most)
