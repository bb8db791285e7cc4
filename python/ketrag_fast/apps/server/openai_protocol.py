"""OpenAI's protocol: models are indexes, and a chat's last question is answered from one, with citations."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.answering import Answering, AnswerStream, answer_while_connected, finish_of, now
from ketrag_fast.apps.server.bodies import Field, Shape, read_body
from ketrag_fast.apps.server.guard import openai_error
from ketrag_fast.apps.server.indexes import OpenIndex
from ketrag_fast.apps.server.problems import Problem
from ketrag_fast.apps.server.replies import JSON, event, json_bytes, json_reply
from ketrag_fast.apps.server.retrieving import LONGEST
from ketrag_fast.apps.server.service import QueryOptions, Service
from ketrag_fast.errors import KetragError
from ketrag_fast.types import Answer, Context

_MOST_TEXTS: Final = 2048
_MOST_MESSAGES: Final = 1000
_TEXT: Final = 100_000
_MARK: Final = re.compile(r"\[(\d{1,9})\]")

EMBEDDINGS: Final[Shape] = {
    "input": Field("any", "a text, or a list of texts", required=True),
    "model": Field("string", "the name of an index", required=True, most=200),
    "encoding_format": Field("string", "how vectors are written", choices=("float", "base64")),
    "dimensions": Field("integer", "the dimension, which cannot be chosen", least=1),
    "input_type": Field("string", "what the texts are", choices=("query", "document")),
}
CHAT: Final[Shape] = {
    "model": Field("string", "the name of an index, or NAME:MODE for a mode of it", required=True, most=200),
    "messages": Field(
        "array",
        "the last one of a user is the question",
        required=True,
        least=1,
        most=_MOST_MESSAGES,
        items=Field("object", "role and content", required=True),
    ),
    "stream": Field("boolean", "answer by server-sent events"),
    "stream_options": Field("object", "include_usage"),
    "max_tokens": Field("integer", "tokens of the answer, at most", least=1, most=16_384),
    "max_completion_tokens": Field("integer", "the same", least=1, most=16_384),
    "n": Field("integer", "one answer", least=1, most=1),
}
"""Other fields of OpenAI's (temperature, ...) are taken and have no effect."""


async def models(request: Request) -> Response:
    """`GET /v1/models`: the indexes."""
    service: Service = request.app.state.service
    return json_reply({"object": "list", "data": [_model(entry) for entry in service.indexes]})


async def model(request: Request) -> Response:
    """`GET /v1/models/NAME`."""
    service: Service = request.app.state.service
    return json_reply(_model(service.indexes.find(request.path_params["name"])))


def _model(entry: OpenIndex) -> dict[str, Any]:
    return {"id": entry.name, "object": "model", "created": entry.created, "owned_by": "ketrag"}


async def embeddings(request: Request) -> Response:
    """`POST /v1/embeddings`: vectors by the index's own encoder."""
    service: Service = request.app.state.service
    body = await read_body(request, EMBEDDINGS, strict=False)
    entry, _ = _index_of(service, body["model"])
    texts = _texts(body["input"])
    role = body.get("input_type", "document")
    seconds = service.options.deadline

    def made() -> bytes:
        rows = entry.index.inspect.vectors(texts, role, seconds=seconds)
        if body.get("dimensions", rows.shape[1]) != rows.shape[1]:
            raise Problem(400, "input", f"dimensions: this index has {rows.shape[1]}", param="dimensions")
        plain = body.get("encoding_format", "float") == "float"
        data = [
            {
                "object": "embedding",
                "index": at,
                "embedding": row if plain else base64.b64encode(row.astype("<f4").tobytes()).decode(),
            }
            for at, row in enumerate(rows)
        ]
        tokens = entry.index.inspect.tokens(texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_bytes({"object": "list", "data": data, "model": body["model"], "usage": usage})

    return Response(await service.aside(made), media_type=JSON)


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 0 < len(texts) <= _MOST_TEXTS:
        raise Problem(422, "bad_request", f"input: a text or 1 to {_MOST_TEXTS:,} texts", param="input")
    for text in texts:
        if not isinstance(text, str):
            raise Problem(422, "bad_request", "input: texts, not tokens", param="input")
        if not text.strip() or len(text) > _TEXT:
            raise Problem(400, "input", f"input: each text has 1 to {_TEXT:,} characters", param="input")
    return texts


def _index_of(service: Service, name: str) -> tuple[OpenIndex, str | None]:
    """The index of a model's name, and the mode, where the name has one."""
    if any(entry.name == name for entry in service.indexes):
        return service.indexes.find(name), None
    index, _, mode = name.partition(":")
    return service.indexes.find(index), mode or None


async def chat(request: Request) -> Response:
    """`POST /v1/chat/completions`."""
    service: Service = request.app.state.service
    body = await read_body(request, CHAT, strict=False)
    entry, mode = _index_of(service, body["model"])
    if service.options.settings.get("writer") in (None, "none"):
        raise Problem(
            422,
            "no_model",
            "this service has no language model",
            hint="start it with --llm SPEC, or ask /v1/retrieve for passages",
        )
    question = _question(body["messages"])
    query = QueryOptions(entry, mode, None, None, explain=False)
    seconds = service.options.answer_seconds
    options: dict[str, Any] = {"seconds": seconds}
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    if most is not None:
        options["tokens"] = most
    answering = Answering(service, query, question, options)
    head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": now(), "model": body["model"]}
    if body.get("stream"):
        usage = bool(body.get("stream_options", {}).get("include_usage"))
        render = _chunks(head, entry.name, usage=usage)
        return AnswerStream(service, seconds, answering, render, b"data: [DONE]\n\n")
    answer = await answer_while_connected(request, answering)
    message = {
        "role": "assistant",
        "content": answer.text,
        "refusal": None,
        "annotations": notes_of(answer, entry.name),
    }
    choice = {"index": 0, "message": message, "finish_reason": finish_of(answer), "logprobs": None}
    return json_reply({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)})


def _question(messages: list[dict[str, Any]]) -> str:
    """The last message of a user's."""
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, list):
            parts = [part.get("text") for part in content if isinstance(part, dict)]
            content = "\n".join(part for part in parts if isinstance(part, str))
        if isinstance(content, str) and content.strip() and len(content) <= LONGEST:
            return content
        raise Problem(
            422, "bad_request", f"messages: a user's message is a text of 1 to {LONGEST:,} characters"
        )
    raise Problem(422, "bad_request", "messages: there is none of a user's", param="messages")


def notes_of(answer: Answer, index: str) -> list[dict[str, Any]]:
    """Where each citation of the text leads. The address has the span in the document, in characters."""
    cited = {citation.number: citation.passage for citation in answer.citations}
    found = []
    for mark in _MARK.finditer(answer.text):
        passage = cited.get(int(mark[1]))
        if passage is None:
            continue
        place = f"{quote(index)}/{quote(passage.document)}#char={passage.start},{passage.end}"
        found.append(
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": mark.start(),
                    "end_index": mark.end(),
                    "title": passage.title or passage.document,
                    "url": f"ketrag:{place}",
                    "number": int(mark[1]),
                    "document": passage.document,
                    "start": passage.start,
                    "end": passage.end,
                    "unit": passage.unit,
                    "text": passage.text,
                },
            }
        )
    return found


def _usage(answer: Answer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.tokens_in,
        "completion_tokens": answer.tokens_out,
        "total_tokens": answer.tokens_in + answer.tokens_out,
    }


def _chunks(head: Mapping[str, Any], index: str, *, usage: bool) -> Callable[[Any], bytes]:
    """What each piece of an answer is in a stream of chunks."""

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event({**head, "object": "chat.completion.chunk", "choices": [choice]})

    begun = False

    def render(piece: Context | str | Answer | KetragError) -> bytes:
        nonlocal begun
        if isinstance(piece, Context):
            return chunk({"role": "assistant", "content": ""})
        if isinstance(piece, str):
            begun = True
            return chunk({"content": piece})
        if isinstance(piece, KetragError):
            said = {"code": piece.code, "message": piece.message, "hint": piece.hint}
            return event(openai_error(said, 500))
        made = b"" if begun or not piece.text else chunk({"content": piece.text})
        made += chunk({"annotations": notes_of(piece, index)}, finish_of(piece))
        if usage:
            made += event({**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(piece)})
        return made

    return render
