"""Answers of a language model: generated on a thread, streamed in pieces, stopped when the client is gone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ketrag_fast.apps.server.bodies import Field, Shape, read_body
from ketrag_fast.apps.server.problems import Problem, busy, error_json, log
from ketrag_fast.apps.server.replies import event, json_reply
from ketrag_fast.apps.server.retrieving import query_of, question, topics
from ketrag_fast.apps.server.service import QueryOptions, Service, context_json
from ketrag_fast.errors import DeadlineExceeded, KetragError
from ketrag_fast.types import Answer, Context

_BUSY: Final = 20.0
"""Seconds for the `Retry-After` header when the queue of answers is full."""
STREAM: Final = "text/event-stream"
_ALIVE: Final = 10.0
_LINGER: Final = 30.0
_PIECES: Final = 10_000
"""Maximum number of unread pieces; with more of them the model stops."""


def shape(service: Service) -> Shape:
    """Return the fields of the body of `/v1/ask`."""
    return {
        "question": question(required=True),
        **topics(service),
        "stream": Field("boolean", "stream server-sent events: context, text..., answer"),
        "quotes": Field("integer", "maximum number of quoted sentences without a model", least=1, most=100),
        "answer_tokens": Field("integer", "maximum tokens of the answer", least=1, most=16_384),
        "answer_seconds": Field(
            "number",
            "maximum seconds for the answer",
            least=0,
            most=service.options.answer_seconds,
            above=True,
        ),
    }


class Answering:
    """One answer in progress. `pieces` yields the context, pieces of text, then the answer. The language
    model of the index is in use until the thread ends, however slowly the client reads.
    """

    def __init__(self, service: Service, query: QueryOptions, question: str, options: dict[str, Any]) -> None:
        self._service = service
        self._query = query
        self._question = question
        self._options = options
        self._gone = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Context | str | Answer | Exception] = asyncio.Queue()

    def stop(self) -> None:
        """Stop the model at its next piece, because the client is gone."""
        self._gone.set()

    async def pieces(self) -> AsyncIterator[Context | str | Answer | None]:
        """Yield the pieces, and None if none arrives for a while.

        Raises Problem 429 if too many answers wait, DeadlineExceeded if the model stays busy, and what the
        library raises.
        """
        await self._take_turn()
        self._loop.run_in_executor(self._service.writers, self._run).add_done_callback(self._end_turn)
        while True:
            try:
                async with asyncio.timeout(_ALIVE):
                    piece = await self._queue.get()
            except TimeoutError:
                yield None
                continue
            if isinstance(piece, Exception):
                raise piece
            yield piece
            if isinstance(piece, Answer):
                return

    async def _take_turn(self) -> None:
        service = self._service
        if service.answers >= service.options.answers:
            raise busy(_BUSY)
        service.answers += 1
        try:
            async with asyncio.timeout(self._options["seconds"]):
                await self._query.entry.answering.acquire()
        except BaseException as error:
            service.answers -= 1
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded("the language model is busy with other questions") from None
            raise

    def _end_turn(self, _: object) -> None:
        self._query.entry.answering.release()
        self._service.answers -= 1

    def _run(self) -> None:
        """Answer the question, on a thread."""
        query = self._query
        try:
            self._put(
                query.entry.index.ask(
                    self._question,
                    mode=query.mode,
                    budget=query.budget,
                    top=query.top,
                    explain=query.explain,
                    filter=query.filter,
                    hops=query.hops,
                    newest=query.newest,
                    on_context=self._put,
                    on_text=self._put,
                    **self._options,
                )
            )
        except Exception as error:  # noqa: BLE001 - raised again by `pieces`
            self._put(error)

    def _put(self, piece: Context | str | Answer | Exception) -> bool:
        if isinstance(piece, Context):
            _ = len(piece.passages)  # built on this thread, not on the event loop
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)
        return not self._gone.is_set() and self._queue.qsize() < _PIECES


async def answer_while_connected(request: Request, answering: Answering) -> Answer:
    """Return the whole answer; stop the model if the client disconnects."""
    watch = asyncio.create_task(_watch_disconnect(request, answering))
    try:
        async for piece in answering.pieces():
            if isinstance(piece, Answer):
                return piece
    finally:
        answering.stop()
        watch.cancel()
    raise Problem(499, "gone", "the client disconnected")


async def _watch_disconnect(request: Request, answering: Answering) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    answering.stop()


async def ask(request: Request) -> Response:
    """Serve `POST /v1/ask`."""
    service: Service = request.app.state.service
    body = await read_body(request, request.app.state.shapes["ask"])
    query = query_of(service, body)
    if not body["question"].strip():
        raise Problem(400, "empty_query", "the question is empty")
    seconds = body.get("answer_seconds", service.options.answer_seconds)
    options: dict[str, Any] = {"seconds": seconds}
    if "answer_tokens" in body:
        options["tokens"] = body["answer_tokens"]
    options |= {name: body[name] for name in ("deadline", "quotes") if name in body}
    answering = Answering(service, query, body["question"], options)
    if body.get("stream"):
        return AnswerStream(service, seconds, answering, partial(_event, query))
    return json_reply((await answer_while_connected(request, answering)).to_json())


def _event(query: QueryOptions, piece: Context | str | Answer | KetragError) -> bytes:
    if isinstance(piece, Context):
        return event(context_json(piece, query), "context")
    if isinstance(piece, Answer):
        return event(piece.to_json(), "answer")
    if isinstance(piece, KetragError):
        return event(error_json(piece), "error")
    return event({"text": piece}, "text")


class AnswerStream(StreamingResponse):
    """An answer as server-sent events. An error before the first event is a reply with its own status."""

    def __init__(
        self,
        service: Service,
        seconds: float,
        answering: Answering,
        render: Callable[[Any], bytes],
        last: bytes = b"",
    ) -> None:
        self._seconds = seconds
        self._answering = answering
        self._pieces = answering.pieces()
        self._render = render
        self._last = last
        self._folders = service.indexes.folders
        super().__init__(self._events(), media_type=STREAM)
        self._first: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; give up if the client does not read it."""
        try:
            self._first = await anext(self._pieces)
            async with asyncio.timeout(self._seconds + _LINGER):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            raise Problem(499, "gone", "the client does not read the reply") from None
        finally:
            self._answering.stop()

    async def _events(self) -> AsyncIterator[bytes]:
        piece = self._first
        try:
            while True:
                yield b": alive\n\n" if piece is None else self._render(piece)
                piece = await anext(self._pieces)
        except StopAsyncIteration:
            pass
        except KetragError as error:
            data = error_json(error, self._folders)
            yield self._render(Problem(500, error.code, data["message"], hint=data["hint"]))
        except Exception:  # noqa: BLE001 - the reply has begun: it ends with an error event
            log.exception("an answer was interrupted")
            yield self._render(Problem(500, "internal", "internal error; see the log of the service"))
        if self._last:
            yield self._last


def finish_of(answer: Answer) -> str:
    """Return the finish reason of an answer in OpenAI's terms."""
    return "stop" if answer.finish in (None, "stop") else "length"


def now() -> int:
    """Return the seconds since 1970, as in OpenAI's objects."""
    return int(time.time())
