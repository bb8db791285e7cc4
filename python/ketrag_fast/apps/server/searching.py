"""`POST /v1/search`, `GET /v1/text` and `POST /v1/grep`: where things are, and the text of a place."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.bodies import Field, Shape, read_body
from ketrag_fast.apps.server.inspect import requested_index
from ketrag_fast.apps.server.options import is_local
from ketrag_fast.apps.server.problems import Problem
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.retrieving import filter_text, question, topics
from ketrag_fast.apps.server.service import Service

_MOST: Final = 1000
_LINES: Final = 10_000
_PATTERN: Final = 1000
_GLOB: Final = Field(
    "array",
    "only files whose path matches one of these, such as docs/**/*.md; !GLOB leaves files out",
    most=20,
    items=Field("string", "a pattern of paths", required=True, least=1, most=500),
)


def search_shape(service: Service) -> Shape:
    """Return the fields of the body of `/v1/search`."""
    shared = topics(service)
    return {
        "query": question(required=True),
        "limit": Field("integer", "maximum number of hits (default 10)", least=0, most=_MOST),
        "glob": _GLOB,
        "grep": Field("string", "only passages with a line that matches", least=1, most=_PATTERN),
        "snippets": Field("boolean", "add the lines that show the words of the query, with ranges to mark"),
        **{name: shared[name] for name in ("index", "mode", "filter", "min_score", "deadline", "hops")},
    }


def grep_shape(service: Service) -> Shape:
    """Return the fields of the body of `/v1/grep`."""
    shared = topics(service)
    return {
        "pattern": Field("string", "regular expression", required=True, least=1, most=_PATTERN),
        "ignore_case": Field("boolean", "match letters in any case"),
        "words": Field("boolean", "match whole words only"),
        "fixed": Field("boolean", "the pattern is a text"),
        "glob": _GLOB,
        "limit": Field("integer", "maximum number of lines (default 1,000)", least=0, most=_LINES),
        **{name: shared[name] for name in ("index", "filter", "deadline")},
    }


async def search(request: Request) -> Response:
    """Serve `POST /v1/search`."""
    service: Service = request.app.state.service
    body = await read_body(request, request.app.state.shapes["search"])
    entry = service.indexes.find(body.get("index"))
    options = {
        "min_score": body.get("min_score"),
        "glob": body.get("glob"),
        "grep": body.get("grep"),
        "mode": body.get("mode"),
        "filter": filter_text(body.get("filter")),
        "hops": body.get("hops") or (),
        "deadline": body.get("deadline", service.options.deadline),
    }
    hits = await service.aside(lambda: entry.index.search(body["query"], body.get("limit", 10), **options))
    data = hits.to_json()
    if body.get("snippets"):
        for row, hit in zip(data["hits"], hits, strict=True):
            row["snippet"] = [
                {"line": line.number, "text": line.text, "marks": [list(mark) for mark in line.marks]}
                for line in hit.snippet
            ]
    return json_reply({**data, "hits": _shown(service, data["hits"])})


async def grep(request: Request) -> Response:
    """Serve `POST /v1/grep`."""
    service: Service = request.app.state.service
    body = await read_body(request, request.app.state.shapes["grep"])
    entry = service.indexes.find(body.get("index"))
    limit = body.get("limit", _MOST)
    options = {
        "ignore_case": body.get("ignore_case", False),
        "words": body.get("words", False),
        "fixed": body.get("fixed", False),
        "glob": body.get("glob"),
        "limit": limit + 1,
        "filter": filter_text(body.get("filter")),
        "deadline": body.get("deadline", service.options.deadline),
    }
    matches = await service.aside(lambda: entry.index.grep(body["pattern"], **options))
    rows = _shown(service, [match.to_json() for match in matches[:limit]])
    return json_reply({"schema": "ketrag/grep/1", "matches": rows, "more": len(matches) > limit})


async def text(request: Request) -> Response:
    """Serve `GET /v1/text`: the indexed text of a file, or some lines of it."""
    service, entry = requested_index(request, "path")
    path = request.query_params.get("path", "")
    if not 0 < len(path) <= _PATTERN:
        raise Problem(
            422, "bad_request", "path: must be that of a document, such as notes.md:93-110", param="path"
        )
    excerpt = await service.aside(entry.index.text, path)
    return json_reply({"schema": "ketrag/text/1", **_shown(service, [excerpt.to_json()])[0]})


def _shown(service: Service, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results without the paths of this machine if others than its users may see them."""
    if not is_local(service.options.host):
        for row in rows:
            row["path"] = row["source"] = None
    return rows
