"""`POST /v1/documents`: adds documents to an index, where writing is allowed. Readers go on meanwhile."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.config import Settings, names
from ketrag_fast.index import Index
from ketrag_fast.server.bodies import Field, Shape, read
from ketrag_fast.server.indexes import OpenIndex
from ketrag_fast.server.looking import clean
from ketrag_fast.server.looking import documents as listed
from ketrag_fast.server.problems import Problem
from ketrag_fast.server.replies import json_reply
from ketrag_fast.server.service import Service
from ketrag_fast.types import BuildReport, Document

SHAPE: Final[Shape] = {
    "index": Field("string", "which index; without it the first", most=64),
    "documents": Field(
        "array",
        "one with an id that is there takes its place",
        required=True,
        least=1,
        most=10_000,
        items=Field(
            "object",
            "a document",
            required=True,
            fields={
                "id": Field("string", "its name", required=True, least=1, most=1000),
                "text": Field("string", "its text", required=True),
                "title": Field("string", "its title", most=10_000),
                "metadata": Field("object", "what else is known of it"),
            },
        ),
    ),
}


async def listed_or_added(request: Request) -> Response:
    """One path with two methods."""
    return await (add(request) if request.method == "POST" else listed(request))


async def add(request: Request) -> Response:
    """The endpoint. The reply comes when the new generation is published, and answers here."""
    service: Service = request.app.state.service
    if not service.options.writable:
        raise Problem(
            403, "read_only", "this service only reads", hint="start it with --allow-write", param="documents"
        )
    body = await read(request, SHAPE)
    entry = service.indexes.find(body.get("index"))
    documents = [
        Document(one["id"], one["text"], one.get("title", ""), one.get("metadata", {}))
        for one in body["documents"]
    ]
    if entry.writing.locked():
        raise Problem(
            409,
            "index_locked",
            "documents are being added to this index",
            hint="send them again later, many at once",
            headers={"Retry-After": "1"},
        )
    async with entry.writing:
        report = await service.aside(_built, service, entry, documents)
    data: dict[str, Any] = clean(report.to_json(), service.indexes.folders)
    return json_reply(data)


def _built(service: Service, entry: OpenIndex, documents: list[Document]) -> BuildReport:
    """On a thread. How the index is made is its own affair; a build stops when the service does."""
    given = {n: v for n, v in service.options.settings.items() if n in names("run")}
    index = Index.build(
        documents,
        entry.index.path,
        settings=Settings(**given),
        progress=lambda _: not service.stopping,
    )
    index.close()
    entry.index.refresh()
    assert index.report is not None  # noqa: S101 - whoever builds has one
    return index.report
