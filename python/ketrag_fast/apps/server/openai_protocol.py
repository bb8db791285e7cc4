"""OpenAI's protocol: indexes are models, and the last question of a chat is answered from one, with
citations.
"""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from ketrag_fast.apps.server.answering import STREAM, Answering, AnswerStream, answer_while_connected
from ketrag_fast.apps.server.endpoints import Call, Endpoint, Field, Shape
from ketrag_fast.apps.server.guard import openai_error
from ketrag_fast.apps.server.replies import Problem, event, json_reply
from ketrag_fast.apps.server.retrieval import LONGEST, fields_of, topics
from ketrag_fast.apps.server.service import OpenIndex, Service
from ketrag_fast.errors import KetragError
from ketrag_fast.types import Answer, Context, Turn
from ketrag_fast.types.turns import MOST_ANSWER

_MOST_TEXTS: Final = 2048
_MOST_MESSAGES: Final = 1000
_TEXT: Final = 100_000
_TURNS: Final = 9
"""Last user messages that are read: the question and the turns before it."""
_MARK: Final = re.compile(r"\[(\d{1,9})\]")
_CITED: Final = re.compile(r" ?\[(?:\d{1,9}|\?)\]")

_RETRIEVAL: Final = ("budget", "top", "deadline", "filter", "newest")
"""Fields of `/v1/ask` that a chat request may have as well (`extra_body` of OpenAI's clients)."""
EMBEDDINGS: Final[Shape] = {
    "input": Field("any", "a string, or a list of strings", required=True),
    "model": Field("string", "index name", required=True, most=200),
    "encoding_format": Field("string", "encoding of the vectors", choices=("float", "base64")),
    "dimensions": Field("integer", "dimension of the vectors; only that of the index", least=1),
    "input_type": Field("string", "role of the texts", choices=("query", "document")),
}
CHAT: Final[Shape] = {
    "model": Field("string", "index name, or NAME:MODE to choose a mode", required=True, most=200),
    "messages": Field(
        "array",
        "the last user message is the question; one that does not stand alone takes names from those before",
        required=True,
        least=1,
        most=_MOST_MESSAGES,
        items=Field("object", "role and content", required=True),
    ),
    "stream": Field("boolean", "stream server-sent events"),
    "stream_options": Field("object", "include_usage"),
    "max_tokens": Field("integer", "maximum tokens of the answer", least=1, most=16_384),
    "max_completion_tokens": Field("integer", "as max_tokens", least=1, most=16_384),
    "n": Field("integer", "number of answers; only 1", least=1, most=1),
}
"""Other OpenAI fields (temperature, ...) are accepted and have no effect."""


def endpoints(service: Service) -> list[Endpoint]:
    """Return the endpoints of OpenAI's protocol."""
    shared = topics(service)
    return [
        Endpoint("GET", "/v1/models", models, "List the indexes as OpenAI models"),
        Endpoint(
            "GET",
            "/v1/models/{name}",
            model,
            "Show an index as an OpenAI model",
            {"name": Field("string", "index name", required=True, least=1)},
        ),
        Endpoint(
            "POST",
            "/v1/embeddings",
            embeddings,
            "Embed texts (OpenAI format)",
            EMBEDDINGS,
            "list",
            is_strict=False,
        ),
        Endpoint(
            "POST",
            "/v1/chat/completions",
            chat,
            "Answer from an index (OpenAI format)",
            {**CHAT, **{name: shared[name] for name in _RETRIEVAL}},
            "chat.completion, or its chunks",
            is_strict=False,
            kinds=("application/json", STREAM),
        ),
    ]


async def models(call: Call) -> dict[str, Any]:
    """List the indexes."""
    return {"object": "list", "data": [_model(entry) for entry in call.indexes]}


async def model(call: Call) -> dict[str, Any]:
    """Show one index."""
    return _model(call.indexes.find(call.values["name"]))


def _model(entry: OpenIndex) -> dict[str, Any]:
    return {"id": entry.name, "object": "model", "created": entry.created, "owned_by": "ketrag"}


def embeddings(call: Call) -> dict[str, Any]:
    """Embed texts with the model of an index."""
    body = call.values
    entry, _ = _index_of(call, body["model"])
    texts, inspect = _texts(body["input"]), entry.index.inspect
    role, seconds = body.get("input_type", "document"), call.service.options.deadline
    rows = inspect.vectors(texts, role, seconds=seconds)
    if body.get("dimensions", rows.shape[1]) != rows.shape[1]:
        message = f"dimensions: must be {rows.shape[1]}, that of the index"
        raise Problem(400, "input", message, param="dimensions")
    is_plain = body.get("encoding_format", "float") == "float"
    vectors = rows if is_plain else [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(vectors)]
    tokens = inspect.tokens(texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 0 < len(texts) <= _MOST_TEXTS:
        raise Problem(
            422, "bad_request", f"input: must be a string or 1 to {_MOST_TEXTS:,} strings", param="input"
        )
    for text in texts:
        if not isinstance(text, str):
            raise Problem(422, "bad_request", "input: must be strings, not tokens", param="input")
        if not text.strip() or len(text) > _TEXT:
            raise Problem(
                400, "input", f"input: each text must have 1 to {_TEXT:,} characters", param="input"
            )
    return texts


def _index_of(call: Call, name: str) -> tuple[OpenIndex, str | None]:
    """Return the index of a model name, and the mode if the name has one."""
    if any(entry.name == name for entry in call.indexes):
        return call.indexes.find(name), None
    index, _, mode = name.partition(":")
    return call.indexes.find(index), mode or None


async def chat(call: Call) -> Response:
    """Answer the last question of a chat."""
    service, body = call.service, call.values
    entry, mode = _index_of(call, body["model"])
    if not entry.index.inspect.has_answer_llm:
        raise Problem(
            422,
            "no_model",
            "this service has no language model",
            hint="start it with --llm SPEC, or use /v1/retrieve for passages",
        )
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    options = {} if most is None else {"tokens": most}
    # Chat programs add texts to what a person typed, so that marks in a message are not demands.
    fields = fields_of({**body, "mode": mode, "literal": True})
    question = _question(body["messages"])
    fields["history"] = _turns(body["messages"])
    seconds = service.options.answer_seconds
    answering = Answering(service, entry, question, fields, seconds=seconds, **options)
    head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": body["model"]}
    if body.get("stream"):
        usage = bool(body.get("stream_options", {}).get("include_usage"))
        return AnswerStream(service, answering, _chunks(head, entry.name, usage=usage), b"data: [DONE]\n\n")
    answer = await answer_while_connected(call.request, answering)
    message = {
        "role": "assistant",
        "content": answer.text,
        "refusal": None,
        "annotations": notes_of(answer, entry.name),
    }
    choice = {"index": 0, "message": message, "finish_reason": _finish_of(answer), "logprobs": None}
    return json_reply({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)})


def _finish_of(answer: Answer) -> str:
    return "stop" if answer.finish in (None, "stop") else "length"


def _question(messages: list[dict[str, Any]]) -> str:
    """Return the last user message."""
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        content = _text_of(message)
        if content.strip() and len(content) <= LONGEST:
            return content
        raise Problem(
            422, "bad_request", f"messages: the last user message must have 1 to {LONGEST:,} characters"
        )
    raise Problem(422, "bad_request", "messages: no user message", param="messages")


def _text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message; empty if it has none."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _turns(messages: list[dict[str, Any]]) -> list[Turn]:
    """Return the turns before the last user message: each question with the answers that follow it."""
    asked = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    turns = []
    for first, following in pairwise(asked[-_TURNS:]):
        replies = [_text_of(one) for one in messages[first:following] if one.get("role") == "assistant"]
        if question := _text_of(messages[first]).strip():
            turns.append(Turn(question[:LONGEST], _CITED.sub("", "\n".join(replies))[:MOST_ANSWER]))
    return turns


def notes_of(answer: Answer, index: str) -> list[dict[str, Any]]:
    """Return the citations of an answer as annotations. The URL contains the span in the document, in
    characters.
    """
    cited = {citation.number: citation.passage for citation in answer.citations}
    notes = []
    for mark in _MARK.finditer(answer.text):
        passage = cited.get(int(mark[1]))
        if passage is None:
            continue
        place = f"{quote(index)}/{quote(passage.document)}#char={passage.start},{passage.end}"
        notes.append(
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
                    "metadata": dict(passage.metadata),
                },
            }
        )
    return notes


def _usage(answer: Answer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.tokens_in,
        "completion_tokens": answer.tokens_out,
        "total_tokens": answer.tokens_in + answer.tokens_out,
    }


def _chunks(head: Mapping[str, Any], index: str, *, usage: bool) -> Callable[[Any], bytes]:
    """Return a function that renders the pieces of an answer as chunks of a stream."""

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event({**head, "object": "chat.completion.chunk", "choices": [choice]})

    has_begun = False

    def render(piece: Context | str | Answer | KetragError) -> bytes:
        nonlocal has_begun
        if isinstance(piece, Context):
            return chunk({"role": "assistant", "content": ""})
        if isinstance(piece, str):
            has_begun = True
            return chunk({"content": piece})
        if isinstance(piece, KetragError):
            data = {"code": piece.code, "message": piece.message, "hint": piece.hint}
            return event(openai_error(data, 500))
        chunks = b"" if has_begun or not piece.text else chunk({"content": piece.text})
        chunks += chunk({"annotations": notes_of(piece, index)}, _finish_of(piece))
        if usage:
            chunks += event(
                {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(piece)}
            )
        return chunks

    return render
