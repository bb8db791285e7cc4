"""One connection: uvicorn's, with limits on what a slow or endless client may hold."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ketrag_fast.apps.server.front import Adopted
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import LATE

_HEAD: Final = 65_536
"""Maximum bytes of a request's head."""
_HEADERS: Final = 100
_LINGER: Final = 1.0
_SLOW: Final = frozenset(("/v1/ask", "/v1/chat/completions"))
_FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s"
)
_BODY: Final = b'{"schema":"ketrag/error/1","code":"busy","message":"too many connections","hint":null}'


def create_protocol(options: ServerOptions) -> type[HttpToolsProtocol]:
    """Return the connection class of one worker, which counts its open connections."""

    class Connection(LimitedConnection):
        """A connection with the limits of `options`."""

        limits = options
        open_connections: ClassVar = set()

    return Connection


class LimitedConnection(HttpToolsProtocol):
    """A connection with limits; `create_protocol` makes a subclass with the limits of a worker.

    It is closed if its head does not arrive in time (slow loris) or is too large. Connections above
    `limits.connections` are answered with 429.
    """

    adopted: Adopted | None = None
    """Facts about a connection that the core accepted and handed over; None for any other."""
    limits: ClassVar[ServerOptions]
    open_connections: ClassVar[set[HttpToolsProtocol]]

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _head_complete = False
    """True while a body arrives, whose limits the application keeps."""

    _refused = False
    _answered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and start the clock of its first head."""
        super().connection_made(transport)
        adopted = self.adopted
        if adopted is None:
            self._refused = len(self.open_connections) >= self.limits.connections
        else:
            self._refused = adopted.refused
        if not self._refused:
            self.open_connections.add(self)
        self._start_timer()
        if adopted is not None and adopted.received:
            self.data_received(adopted.received)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release what the connection holds."""
        self._stop_timer()
        self.open_connections.discard(self)
        if self.adopted is not None:
            self.adopted.front.closed()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes of a head or a body."""
        if self._refused:
            self._refuse()
            return
        if not self._head_complete:
            self._head_bytes += len(data)
            if self._timer is None:
                self._start_timer()
        super().data_received(data)
        too_large = not self._head_complete and self._head_bytes > _HEAD
        if too_large and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        super().on_header(name, value)
        if len(self.headers) > _HEADERS and not self.transport.is_closing():
            self.send_400_response("The request has too many headers.")

    def on_headers_complete(self) -> None:
        """Stop the clock and hand the head to the application."""
        self._stop_timer()
        self._head_complete = True
        if self.adopted is not None and self.adopted.late is not None:
            self.scope[LATE] = self.adopted.late  # type: ignore[typeddict-unknown-key]
            self.adopted.late = None
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the next head."""
        self._head_complete = False
        self._head_bytes = 0
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_response_complete(self) -> None:
        """After the reply, close the connection if the rest of the body does not come soon.

        What comes of it is read first, so that the client gets to read the reply. A client that sends
        it whole keeps its connection, on which its next request may already be.
        """
        super().on_response_complete()
        cycle = self.cycle
        if self._head_complete and cycle.response_complete and not self.transport.is_closing():
            self.loop.call_later(_LINGER, self._close_unread, cycle)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, at once if the client has not read its reply."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def eof_received(self) -> Any:
        """Return whether to keep the connection open after the client has stopped sending.

        It may still read a reply that comes at once. A client that waits for a model has most likely gone.
        """
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and cycle.scope["path"] not in _SLOW

    def _close_unread(self, cycle: RequestResponseCycle) -> None:
        """Close the connection if a body is still incomplete that was answered some time ago."""
        if self._head_complete and self.cycle is cycle and not self.transport.is_closing():
            self.transport.close()

    def _refuse(self) -> None:
        """Answer 429. Closing at once, with bytes unread, would lose the reply on its way."""
        if not self._answered:
            self._answered = True
            self._stop_timer()
            self.transport.write(_FULL % (len(_BODY), _BODY))
            self.loop.call_later(_LINGER, self.transport.close)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.read_seconds, self._close_late)

    def _close_late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
