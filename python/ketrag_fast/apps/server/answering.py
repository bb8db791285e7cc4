"""Answers of a language model: generated on a thread, streamed in pieces, stopped when the client is gone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ketrag_fast.apps.server.endpoints import Call, Endpoint, Field
from ketrag_fast.apps.server.replies import Problem, busy, error_json, event, json_reply, log
from ketrag_fast.apps.server.retrieval import fields_of, question, topics
from ketrag_fast.apps.server.service import OpenIndex, Service, context_json
from ketrag_fast.errors import DeadlineExceeded, KetragError
from ketrag_fast.query.query import QueryFields
from ketrag_fast.types import Answer, Context

_BUSY: Final = 20.0
"""Seconds for the `Retry-After` header when the queue of answers is full."""
STREAM: Final = "text/event-stream"
_ALIVE: Final = 10.0
_LINGER: Final = 30.0
_PIECES: Final = 10_000
"""Maximum number of unread pieces; with more of them the model stops."""


def endpoints(service: Service) -> list[Endpoint]:
    """Return the endpoint for answers."""
    longest = service.options.answer_seconds
    shape = {
        "question": question(required=True),
        **topics(service),
        "stream": Field("boolean", "stream server-sent events: context, text..., answer"),
        "quotes": Field("integer", "maximum number of quoted sentences without a model", least=1, most=100),
        "answer_tokens": Field("integer", "maximum tokens of the answer", least=1, most=16_384),
        "answer_seconds": Field(
            "number", "maximum seconds for the answer", least=0, most=longest, above=True
        ),
    }
    return [
        Endpoint(
            "POST",
            "/v1/ask",
            ask,
            "Answer a question with citations",
            shape,
            "ketrag/answer/1, or with `stream` the events context, text, answer and error",
            kinds=("application/json", STREAM),
        )
    ]


class Answering:
    """One answer in progress. `pieces` yields the context, pieces of text, then the answer. The language
    model of the index is in use until the thread ends, however slowly the client reads.
    """

    def __init__(
        self,
        service: Service,
        entry: OpenIndex,
        question: str,
        fields: QueryFields,
        *,
        seconds: float,
        **options: Any,
    ) -> None:
        """`seconds` and `options` are arguments of `Index.ask`."""
        self._service = service
        self._entry = entry
        self._question = question
        self._fields = fields
        self.seconds = seconds
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
            async with asyncio.timeout(self.seconds):
                await self._entry.answering.acquire()
        except BaseException as error:
            service.answers -= 1
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded("the language model is busy with other questions") from None
            raise

    def _end_turn(self, _: object) -> None:
        self._entry.answering.release()
        self._service.answers -= 1

    def _run(self) -> None:
        """Answer the question, on a thread."""
        try:
            answer = self._entry.index.ask(
                self._question,
                seconds=self.seconds,
                on_context=self._put,
                on_text=self._put,
                **self._options,
                **self._fields,
            )
            self._put(answer)
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


async def ask(call: Call) -> Response:
    """Answer a question, at once or as a stream of events."""
    service, body = call.service, call.values
    fields = fields_of(body)
    if not body["question"].strip():
        raise Problem(400, "empty_query", "the question is empty")
    options: dict[str, Any] = {"quotes": body["quotes"]} if "quotes" in body else {}
    if "answer_tokens" in body:
        options["tokens"] = body["answer_tokens"]
    seconds = body.get("answer_seconds", service.options.answer_seconds)
    answering = Answering(service, call.entry, body["question"], fields, seconds=seconds, **options)
    if body.get("stream"):
        return AnswerStream(service, answering, partial(_event, fields))
    return json_reply((await answer_while_connected(call.request, answering)).to_json())


def _event(fields: QueryFields, piece: Context | str | Answer | KetragError) -> bytes:
    if isinstance(piece, Context):
        return event(context_json(piece, fields), "context")
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
        answering: Answering,
        render: Callable[[Any], bytes],
        last: bytes = b"",
    ) -> None:
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
            async with asyncio.timeout(self._answering.seconds + _LINGER):
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
