"""MCP over standard input and output, and over HTTP: every request gets its reply.

The transport of the `mcp` package logs a line that it cannot parse and drops it, and the client waits for a
reply in vain. It also ends with its input, so that requests of a shell's pipe would get no reply.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any, Final, Self, TextIO

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
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CANCELLED: Final = "notifications/cancelled"
_BAD_ID: Final = "bad_request: the id must be an integer or a short string"
_LONGEST_ID: Final = 1000
_LONGEST_WAIT: Final = 600.0
"""Seconds that an answer may take after the end of the input."""


async def serve_pipes(server: MCPServer[Any]) -> None:
    """Serve until standard input ends and all of its requests have a reply."""
    inner = server._lowlevel_server  # what `run_stdio_async` runs; it takes no streams
    lines: Any = _Lines(_claim_input())
    async with stdio_server(stdin=lines) as (messages, replies):
        answers = _Replies(replies)
        await inner.run(_Messages(messages, answers), answers, inner.create_initialization_options())


def _claim_input() -> TextIO:
    """Return standard input as lines, and let other code and child processes read an empty input instead."""
    own = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return open(own, encoding="utf-8", errors="replace", closefd=False)


class _Lines:
    """The lines of a file; a request with an invalid id becomes a line that the transport refuses.

    The transport would take such a request for a notification, to which nobody replies.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = anyio.wrap_file(file)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._file:
            data = json_or_none(line)
            yield json.dumps([data]) if has_bad_id(data) else line


def json_or_none(text: str | bytes) -> Any:
    """Return parsed JSON; None for a text that is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def has_bad_id(data: Any) -> bool:
    """Return whether a message is a request whose id is neither an integer nor a short string."""
    return isinstance(data, dict) and "method" in data and "id" in data and not _is_id(data["id"])


class RequestIds:
    """The same for streamable HTTP: a request with an invalid id gets status 400 and an error."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body of a request, and pass it on unless its id is invalid."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        messages: list[Message] = []
        size, is_whole = 0, False
        while size <= self._most and not is_whole:  # a longer body is refused by the transport
            messages.append(await receive())
            size += len(messages[-1].get("body", b""))
            is_whole = not messages[-1].get("more_body", False)
        data = json_or_none(b"".join(message.get("body", b"") for message in messages)) if is_whole else None
        if has_bad_id(data):
            reply = _error(None, INVALID_REQUEST, _BAD_ID).model_dump_json(by_alias=True)
            await Response(reply, 400, media_type="application/json")(scope, receive, send)
            return
        messages.reverse()

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, again, send)


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
    if isinstance(data, list) and has_bad_id(data[0] if len(data) == 1 else None):
        data = data[0]  # from `_Lines`
    if not isinstance(data, dict) or not isinstance(data.get("method"), str):
        return _error(None, INVALID_REQUEST, "bad_request: the line is not a JSON-RPC request")
    if "id" not in data:
        return None
    number = data["id"]
    if not _is_id(number):
        return _error(None, INVALID_REQUEST, _BAD_ID)
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
