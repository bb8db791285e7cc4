"""One connection: uvicorn's, with bounds on what a slow or endless client may hold."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ketrag_fast.apps.server.options import ServerOptions

_HEAD: Final = 65_536
"""Bytes of a request's head, at most."""
_HEADERS: Final = 100
_LINGER: Final = 1.0
_SLOW: Final = frozenset(("/v1/ask", "/v1/chat/completions"))
_FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s"
)
_BODY: Final = b'{"schema":"ketrag/error/1","code":"busy","message":"too many connections","hint":null}'


def protocol(options: ServerOptions) -> type[HttpToolsProtocol]:
    """The class of connections. One whose head does not come in time is closed (slow loris), as is one whose
    head is too large; one more than there may be is answered with 429.
    """
    inside: set[HttpToolsProtocol] = set()

    class Connection(HttpToolsProtocol):
        """A connection within bounds."""

        _patience: asyncio.TimerHandle | None = None
        _head = 0
        _reading = False
        """Whether the head is complete: what comes then is a body, whose bounds the application keeps."""

        _refused = False
        _answered = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """A client has come."""
            super().connection_made(transport)
            self._refused = len(inside) >= options.connections
            if not self._refused:
                inside.add(self)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            """It has gone."""
            self._stop()
            inside.discard(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """Some bytes, of a head or a body."""
            if self._refused:
                self._refuse()
                return
            if not self._reading:
                self._head += len(data)
                if self._patience is None:
                    self._wait()
            super().data_received(data)
            if not self._reading and self._head > _HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

        def on_header(self, name: bytes, value: bytes) -> None:
            """One line of the head."""
            super().on_header(name, value)
            if len(self.headers) > _HEADERS and not self.transport.is_closing():
                self.send_400_response("The request has too many headers.")

        def on_headers_complete(self) -> None:
            """The head is there."""
            self._stop()
            self._reading = True
            if not self.transport.is_closing():
                super().on_headers_complete()

        def on_message_complete(self) -> None:
            """The body is there."""
            self._reading = False
            self._head = 0
            if not self.transport.is_closing():
                super().on_message_complete()

        def on_body(self, body: bytes) -> None:
            """A part of the body."""
            if not self.transport.is_closing():
                super().on_body(body)

        def on_response_complete(self) -> None:
            """The reply is sent. Where the body is not all there it is of no use: some of it is let pass, so
            that the client gets to read the reply, and the connection ends.
            """
            super().on_response_complete()
            unread = self._reading and self.cycle.response_complete
            if unread and not self.transport.is_closing():
                self.loop.call_later(_LINGER, self.transport.close)

        def timeout_keep_alive_handler(self) -> None:
            """Nothing came for a while. Who has not even read the reply is not waited for."""
            if self.transport.get_write_buffer_size():
                self.transport.abort()
            super().timeout_keep_alive_handler()

        def eof_received(self) -> Any:
            """A client that has sent all may still read a reply that comes at once. One that waits for a
            model has most likely gone.
            """
            cycle = self.cycle
            return cycle is not None and not cycle.response_complete and cycle.scope["path"] not in _SLOW

        def _refuse(self) -> None:
            """Closed at once, with bytes unread, the reply would be lost on its way."""
            if not self._answered:
                self._answered = True
                self._stop()
                self.transport.write(_FULL % (len(_BODY), _BODY))
                self.loop.call_later(_LINGER, self.transport.close)

        def _wait(self) -> None:
            self._patience = self.loop.call_later(options.read_seconds, self._late)

        def _late(self) -> None:
            self._patience = None
            if not self.transport.is_closing():
                self.transport.close()

        def _stop(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

    return Connection
