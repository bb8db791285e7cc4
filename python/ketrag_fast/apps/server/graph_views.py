"""`GET /v1/graph-view`: a picture of a graph, or of the surroundings of names or of a question."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.inspect import number, requested_index, require_generation
from ketrag_fast.apps.server.problems import Problem
from ketrag_fast.apps.server.replies import json_bytes
from ketrag_fast.apps.server.retrieving import LONGEST
from ketrag_fast.base.filters import parse_filter

MOST: Final = 100_000
"""Maximum number of nodes of a reply."""
_DEFAULT: Final = 300
_NAMES: Final = 100
_NAME: Final = 500
_KNOWN: Final = ("graph", "around", "to", "question", "limit", "filter", "generation")


async def graph_view(request: Request) -> Response:
    """Serve `GET /v1/graph-view`. Without `graph` it is the first graph of the index."""
    query = request.query_params
    service, entry = requested_index(request, *_KNOWN)
    limit = number(request, "limit", _DEFAULT, MOST)
    around, question, chosen = query.getlist("around"), query.get("question"), query.get("filter")
    to = query.get("to")
    if limit < 1:
        raise Problem(422, "bad_request", "limit: must be at least 1", param="limit")
    if len(around) > _NAMES or any(len(name) > _NAME for name in around):
        text = f"around: at most {_NAMES} names of at most {_NAME} characters"
        raise Problem(422, "bad_request", text, param="around")
    if len(to or "") > _NAME:
        raise Problem(422, "bad_request", f"to: at most {_NAME} characters", param="to")
    if len(question or "") > LONGEST or len(chosen or "") > LONGEST:
        raise Problem(422, "bad_request", f"question or filter: at most {LONGEST:,} characters")
    if chosen is not None:
        parse_filter(chosen)
    require_generation(request, entry)
    until = time.monotonic() + service.options.deadline

    def in_time(done: int, total: int) -> bool:
        return time.monotonic() < until and not service.stopping

    def draw() -> bytes:
        names = entry.index.inspect.graphs()
        name = query.get("graph") or next(iter(names), "")
        if not name:
            raise Problem(
                422, "mode_unavailable", "this index has no graph", hint="ketrag index --modes auto"
            )
        view = entry.index.inspect.graph(
            name, around=around, to=to, question=question, limit=limit, filter=chosen, progress=in_time
        )
        return json_bytes({**view.to_json(), "index": entry.name, "graphs": list(names)})

    return Response(await service.aside(draw), media_type="application/json")
