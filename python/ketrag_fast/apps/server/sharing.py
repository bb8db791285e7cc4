"""Endpoints that give an index to services of other machines, which search it together with theirs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from ketrag_fast.apps.server.indexes import OpenIndex
from ketrag_fast.apps.server.inspect import requested_index
from ketrag_fast.apps.server.problems import Problem
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.service import Service
from ketrag_fast.index import Index
from ketrag_fast.index.bundles import part_state


def _shared_index(request: Request) -> tuple[Service, OpenIndex]:
    service: Service = request.app.state.service
    if not service.options.share:
        raise Problem(
            403, "not_shared", "this service shares no index", hint="start it with `ketrag serve --share`"
        )
    return requested_index(request)


async def part(request: Request) -> Response:
    """Serve `GET /v1/part`: digest and generation of an index."""
    service, entry = _shared_index(request)
    digest, generation = await service.aside(part_state, entry.index.path)
    data = {"schema": "ketrag/part/1", "index": entry.name, "digest": digest, "generation": generation}
    return json_reply(data)


async def bundle(request: Request) -> Response:
    """Serve `GET /v1/part/bundle`: an index as one file."""
    service, entry = _shared_index(request)
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    try:
        file = Path(folder.name) / "part.bundle"
        await service.aside(Index.bundle, entry.index.path, file)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        file, media_type="application/octet-stream", background=BackgroundTask(folder.cleanup)
    )
