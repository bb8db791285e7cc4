"""`POST /v1/retrieve`: the context of one question or of many."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.bodies import Field, Shape, read_body
from ketrag_fast.apps.server.problems import LATE, Problem, late_reply
from ketrag_fast.apps.server.replies import JSON
from ketrag_fast.apps.server.service import QueryOptions, Service
from ketrag_fast.base.filters import condition_of, parse_filter
from ketrag_fast.query.query import MOST_HOPS

LONGEST: Final = 20_000
"""Maximum characters of a question."""


def question(*, required: bool = False) -> Field:
    """Return the body field `question`."""
    return Field("string", "the question", required=required, least=1, most=LONGEST)


def topics(service: Service) -> Shape:
    """Return the body fields of retrieval, which several endpoints share."""
    names = tuple(entry.name for entry in service.indexes)
    return {
        "index": Field("string", f"index name; default: {names[0]}", most=64),
        "mode": Field("string", "retrieval mode; default: the setting of the index", most=64),
        "budget": Field("integer", "maximum tokens of the context", least=0, most=service.options.budget),
        "top": Field("integer", "maximum number of passages", least=0, most=10_000),
        "min_score": Field("number", "minimum relevance of a passage", least=0, most=1),
        "explain": Field("boolean", "explain each passage"),
        "newest": Field("boolean", "newer documents first among passages of comparable relevance"),
        "deadline": Field("number", "maximum seconds", least=0, most=service.options.deadline, above=True),
        "filter": Field(
            "any",
            "only passages of documents with matching metadata: a string (year>=1990 and lang=en) or object"
            ' ({"year": {"$gte": 1990}, "lang": "en"})',
        ),
        "hops": Field(
            "array",
            "names or sub-questions on the way to the answer that are known already",
            most=MOST_HOPS,
            items=question(required=True),
        ),
    }


def shape(service: Service) -> Shape:
    """Return the fields of the body of `/v1/retrieve`."""
    return {
        "question": question(),
        "questions": Field(
            "array",
            "many questions, instead of `question`",
            least=1,
            most=service.options.questions,
            items=question(required=True),
        ),
        **topics(service),
    }


def query_of(service: Service, body: dict[str, Any]) -> QueryOptions:
    """Return the retrieval options of a body."""
    entry = service.indexes.find(body.get("index"))
    explain = body.get("explain", False)
    return QueryOptions(
        entry,
        body.get("mode"),
        body.get("budget"),
        body.get("top"),
        explain,
        filter_text(body.get("filter")),
        tuple(body.get("hops") or ()),
        newest=body.get("newest"),
        min_score=body.get("min_score"),
    )


def filter_text(given: Any) -> str | None:
    """Return a filter as text; an object becomes JSON, which the library recognises by its first brace.
    Raises InputError for an invalid filter before the query is queued.
    """
    if given is None:
        return None
    if isinstance(given, str):
        parse_filter(given)
        return given
    condition_of(given)
    return json.dumps(given, sort_keys=True)


async def retrieve(request: Request) -> Response:
    """Serve `POST /v1/retrieve`."""
    service: Service = request.app.state.service
    if LATE in request.headers:
        raise late_reply(float(request.headers[LATE]))
    body = await read_body(request, request.app.state.shapes["retrieve"])
    if ("question" in body) == ("questions" in body):
        raise Problem(422, "bad_request", "the request must have either question or questions")
    query = query_of(service, body)
    many = body.get("questions")
    seconds = body.get("deadline", service.options.deadline)
    replies = await service.contexts(query, [body["question"]] if many is None else many, seconds)
    if many is None:
        return Response(replies[0], media_type=JSON)
    return Response(
        b'{"schema":"ketrag/contexts/1","contexts":[' + b",".join(replies) + b"]}", media_type=JSON
    )
