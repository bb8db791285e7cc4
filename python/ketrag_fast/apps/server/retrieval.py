"""Endpoints for questions and texts: contexts, hits, lines that match, and the text at a location."""

from __future__ import annotations

from typing import Any, Final, cast

from starlette.responses import Response

from ketrag_fast.apps.server.endpoints import INDEX, Call, Endpoint, Field, Shape
from ketrag_fast.apps.server.options import is_local
from ketrag_fast.apps.server.replies import JSON, LATE, Problem, late_reply
from ketrag_fast.apps.server.service import Service
from ketrag_fast.base.scopes import SCOPES
from ketrag_fast.index.left_out import reasons_of
from ketrag_fast.query.query import MOST_HOPS, QueryFields

LONGEST: Final = 20_000
"""Maximum characters of a question."""
FIELDS: Final = (
    *(
        "mode",
        "budget",
        "top",
        "min_score",
        "explain",
        "newest",
        "filter",
        "hops",
        "deadline",
        "literal",
        "history",
        "only",
    ),
)
"""Fields of a body that `Index.retrieve` takes under the same name."""
_MOST: Final = 1000
_LINES: Final = 10_000
_PATTERN: Final = 1000


MOST_TURNS: Final = 1000
"""Turns of a conversation in a request, of which the last ones are read."""
_TURN: Final[Shape] = {
    "question": Field("string", "its question", required=True, least=1, most=2 * LONGEST),
    "answer": Field("string", "its answer", most=100_000),
    "titles": Field(
        "array",
        "titles of documents that the answer is about",
        most=100,
        items=Field("string", "a title", required=True),
    ),
}


def question(*, required: bool = False) -> Field:
    """Return the body field `question`."""
    return Field("string", "the question", required=required, least=1, most=LONGEST)


def topics(service: Service) -> Shape:
    """Return the body fields of retrieval, which several endpoints share."""
    first = next(iter(service.indexes)).name
    return {
        "index": Field("string", f"index name; default: {first}", most=64),
        "mode": Field("string", "retrieval mode; default: the setting of the index", most=64),
        "budget": Field("integer", "maximum tokens of the context", least=0, most=service.options.budget),
        "top": Field("integer", "maximum number of passages", least=0, most=10_000),
        "min_score": Field("number", "minimum relevance of a passage", least=0, most=1),
        "explain": Field("boolean", "explain each passage"),
        "newest": Field("boolean", "newer documents first among passages of comparable relevance"),
        "literal": Field(
            "boolean",
            "read the question as plain words: no phrases, exclusions, prefixes, fields or similar words",
        ),
        "only": Field(
            "string", "only files that are code, docs, config or tests, by their paths", choices=SCOPES
        ),
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
        "history": Field(
            "array",
            "the conversation before the question, oldest turn first: the field `turn` of each answer of "
            "`/v1/ask`; a question that does not stand alone takes names from the last ones",
            most=MOST_TURNS,
            items=Field("object", "a turn", required=True, fields=_TURN),
        ),
    }


def endpoints(service: Service) -> list[Endpoint]:
    """Return the endpoints for questions and texts."""
    shared = topics(service)
    glob = Field(
        "array",
        "only files whose path matches one of these, such as docs/**/*.md; !GLOB leaves files out",
        most=20,
        items=Field("string", "a pattern of paths", required=True, least=1, most=500),
    )
    several = Field(
        "array",
        "many questions, instead of `question`",
        least=1,
        most=service.options.questions,
        items=question(required=True),
    )
    search_shape = {
        "query": question(),
        "related": Field(
            "string",
            "instead of a query: path:line or a name in source code; finds what belongs to it",
            least=1,
            most=_PATTERN,
        ),
        "limit": Field("integer", "maximum number of hits (default 10)", least=0, most=_MOST),
        "glob": glob,
        "grep": Field("string", "only passages with a line that matches", least=1, most=_PATTERN),
        "snippets": Field("boolean", "add the lines that show the words of the query, with ranges to mark"),
        **{
            name: shared[name]
            for name in (
                "index",
                "mode",
                "filter",
                "min_score",
                "deadline",
                "hops",
                "literal",
                "history",
                "only",
            )
        },
    }
    grep_shape = {
        "pattern": Field("string", "regular expression", required=True, least=1, most=_PATTERN),
        "ignore_case": Field("boolean", "match letters in any case"),
        "words": Field("boolean", "match whole words only"),
        "fixed": Field("boolean", "the pattern is a text"),
        "glob": glob,
        "limit": Field("integer", "maximum number of lines (default 1,000)", least=0, most=_LINES),
        **{name: shared[name] for name in ("index", "filter", "deadline", "only")},
    }
    path = Field(
        "string",
        "path or document id, maybe with a position: notes.md:93-110, report.pdf:p12",
        required=True,
        least=1,
        most=_PATTERN,
    )
    return [
        Endpoint(
            "POST",
            "/v1/retrieve",
            retrieve,
            "Retrieve the context of one question or of many",
            {"question": question(), "questions": several, **shared},
            "ketrag/context/1 or ketrag/contexts/1",
        ),
        Endpoint(
            "POST",
            "/v1/search",
            search,
            "Find passages with their files and lines",
            search_shape,
            "ketrag/search/1",
        ),
        Endpoint("POST", "/v1/grep", grep, "Find lines that match a pattern", grep_shape, "ketrag/grep/1"),
        Endpoint(
            "GET",
            "/v1/text",
            text,
            "Read the indexed text of a file, or some lines of it",
            {"index": INDEX, "path": path},
        ),
    ]


def fields_of(body: dict[str, Any]) -> QueryFields:
    """Return the fields of a body that `Index.retrieve` takes."""
    return cast("QueryFields", {name: body[name] for name in FIELDS if name in body})


async def retrieve(call: Call) -> Response:
    """Answer one question or many."""
    headers, body, service = call.request.headers, call.values, call.service
    if LATE in headers:
        raise late_reply(float(headers[LATE]))
    if ("question" in body) == ("questions" in body):
        raise Problem(422, "bad_request", "the request must have either question or questions")
    questions = body.get("questions") or [body["question"]]
    seconds = body.get("deadline", service.options.deadline)
    replies = await service.contexts(call.entry.index, fields_of(body), questions, seconds)
    if "question" in body:
        return Response(replies[0], media_type=JSON)
    contexts = b'{"schema":"ketrag/contexts/1","contexts":[' + b",".join(replies) + b"]}"
    return Response(contexts, media_type=JSON)


def search(call: Call) -> dict[str, Any]:
    """Return hits, with `snippets` also the lines that show the words of the query."""
    body, fields = call.values, fields_of(call.values)
    fields.setdefault("deadline", call.service.options.deadline)
    if ("query" in body) == ("related" in body):
        raise Problem(422, "bad_request", "the request must have either query or related")
    how = {name: body.get(name) for name in ("glob", "grep", "related")}
    hits = call.entry.index.search(body.get("query", ""), body.get("limit", 10), **how, **fields)
    data = hits.to_json()
    if body.get("snippets"):
        for row, hit in zip(data["hits"], hits, strict=True):
            row["snippet"] = [
                {"line": line.number, "text": line.text, "marks": [list(mark) for mark in line.marks]}
                for line in hit.snippet
            ]
    return {**data, "hits": shown_paths(call.service, data["hits"])}


def grep(call: Call) -> dict[str, Any]:
    """Return the lines that match a pattern."""
    body = {"limit": _MOST, "deadline": call.service.options.deadline, **call.values}
    names = ("ignore_case", "words", "fixed", "glob", "filter", "deadline", "only")
    options = {name: body[name] for name in names if name in body}
    limit = body["limit"]
    matches = call.entry.index.grep(body["pattern"], limit=limit + 1, **options)
    rows = shown_paths(call.service, [match.to_json() for match in matches[:limit]])
    data = {"schema": "ketrag/grep/1", "matches": rows, "more": len(matches) > limit}
    if body.get("filter") is None and (
        unsearched := call.entry.index.unsearched(body.get("glob"), only=body.get("only"))
    ):
        data["unsearched"] = reasons_of(unsearched)
    return data


def text(call: Call) -> dict[str, Any]:
    """Return the indexed text of a file, or some lines of it."""
    excerpt = call.entry.index.text(call.values["path"])
    return {"schema": "ketrag/text/1", **shown_paths(call.service, [excerpt.to_json()])[0]}


def shown_paths(service: Service, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results as JSON, without paths of this machine if clients of other machines may see them."""
    if not is_local(service.options.host):
        for row in rows:
            row["path"] = row["source"] = None
    return rows
