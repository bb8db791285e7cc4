"""MCP over standard input and output: every request gets its reply.

The transport of the `mcp` package logs a line that it cannot parse and drops it, and the client waits for a
reply in vain. It also ends with its input, so that requests of a shell's pipe would get no reply.
"""

from __future__ import annotations

import json
from typing import Any, Final, Self

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

_CANCELLED: Final = "notifications/cancelled"
_LONGEST_ID: Final = 1000
_LONGEST_WAIT: Final = 600.0
"""Seconds that an answer may take after the end of the input."""


async def serve_pipes(server: MCPServer[Any]) -> None:
    """Serve until standard input ends and all of its requests have a reply."""
    inner = server._lowlevel_server  # what `run_stdio_async` runs; it takes no streams
    async with stdio_server() as (messages, replies):
        answers = _Replies(replies)
        await inner.run(_Messages(messages, answers), answers, inner.create_initialization_options())


class _Stream:
    """A stream of the transport, closed at the end of a `with` block."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Replies(_Stream):
    """A stream for messages to the client, and the requests that have no reply yet."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._open: set[str | int | None] = set()
        self._has_changed = anyio.Event()

    def expect(self, number: str | int | None) -> None:
        """Note a request."""
        self._open.add(number)

    def close(self, number: object) -> None:
        """Forget a request that was answered, or that the client has cancelled."""
        if isinstance(number, (str, int)):
            self._open.discard(number)
        self._has_changed.set()
        self._has_changed = anyio.Event()

    async def wait(self) -> None:
        """Wait until every request has its reply."""
        with anyio.move_on_after(_LONGEST_WAIT):
            while self._open:
                await self._has_changed.wait()

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        try:
            await self._stream.send(item)
        finally:
            if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
                self.close(item.message.id)


class _Messages(_Stream):
    """The valid messages of a stream; invalid ones are answered with an error here."""

    def __init__(self, stream: Any, replies: _Replies) -> None:
        super().__init__(stream)
        self._replies = replies

    @property
    def last_context(self) -> Any:
        """The context of the last message, which the server needs."""
        return self._stream.last_context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. The end of the stream is raised when all requests have their reply."""
        while True:
            try:
                item: SessionMessage | Exception = await self._stream.receive()
            except anyio.EndOfStream:
                await self._replies.wait()
                raise
            if isinstance(item, SessionMessage):
                message = item.message
                if isinstance(message, JSONRPCRequest):
                    self._replies.expect(message.id)
                elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
                    self._replies.close((message.params or {}).get("requestId"))
                return item
            reply = error_reply(item)
            if reply is not None:
                await self._replies.send(SessionMessage(reply))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def error_reply(error: Exception) -> JSONRPCError | None:
    """Return the reply to a line that is not a message; None for a notification, which gets no reply."""
    line = error.errors()[0].get("input") if isinstance(error, ValidationError) else None
    try:
        # Unlike the protocol's parser, json accepts lone surrogates, which gives the id of the request.
        data = json.loads(line) if isinstance(line, (str, bytes)) else line
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "bad_json: the line is not JSON")
    if not isinstance(data, dict) or not isinstance(data.get("method"), str):
        return _error(None, INVALID_REQUEST, "bad_request: the line is not a JSON-RPC request")
    if "id" not in data:
        return None
    number = data["id"]
    if not _is_id(number):
        return _error(None, INVALID_REQUEST, "bad_request: the id must be an integer or a short string")
    if not _is_unicode(json.dumps(data, ensure_ascii=False)):
        message = "bad_request: a string has a lone surrogate (\\ud800 to \\udfff); send valid Unicode"
        return _error(number, INVALID_PARAMS, message)
    return _error(number, INVALID_REQUEST, "bad_request: the line is not a JSON-RPC request")


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_ID and _is_unicode(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _error(number: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))
