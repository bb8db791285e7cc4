"""`POST /v1/documents`: add and remove documents with --allow-write. Queries continue during the change."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.bodies import Field, Shape, read_body
from ketrag_fast.apps.server.indexes import OpenIndex
from ketrag_fast.apps.server.inspect import clean
from ketrag_fast.apps.server.inspect import documents as list_documents
from ketrag_fast.apps.server.problems import Problem
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.service import Service
from ketrag_fast.base.config import Settings, names
from ketrag_fast.index import Index
from ketrag_fast.types import BuildReport, Document

SHAPE: Final[Shape] = {
    "index": Field("string", "index name; default: the first index", most=64),
    "documents": Field(
        "array",
        "documents to add; a document with the same id is replaced",
        least=1,
        most=10_000,
        items=Field(
            "object",
            "a document",
            required=True,
            fields={
                "id": Field("string", "unique id", required=True, least=1, most=1000),
                "text": Field("string", "full text", required=True),
                "title": Field("string", "title", most=10_000),
                "metadata": Field("object", "metadata for filters, returned with each passage"),
            },
        ),
    ),
    "remove": Field(
        "array",
        "documents to remove: ids, or patterns of ids with * and ?",
        least=1,
        most=10_000,
        items=Field("string", "an id", required=True, least=1, most=1000),
    ),
}


async def documents_endpoint(request: Request) -> Response:
    """Serve both methods of `/v1/documents`."""
    return await (change(request) if request.method == "POST" else list_documents(request))


async def change(request: Request) -> Response:
    """Change the documents; reply once the new generation is published and in use here."""
    service: Service = request.app.state.service
    if not service.options.writable:
        raise Problem(
            403,
            "read_only",
            "this service is read-only",
            hint="start it with --allow-write",
            param="documents",
        )
    body = await read_body(request, SHAPE)
    entry = service.indexes.find(body.get("index"))
    if not body.get("documents") and not body.get("remove"):
        raise Problem(422, "bad_request", "the request has neither documents nor remove", param="documents")
    documents = [
        Document(one["id"], one["text"], one.get("title", ""), one.get("metadata", {}))
        for one in body.get("documents") or ()
    ]
    if entry.writing.locked():
        raise Problem(
            409,
            "index_locked",
            "the documents of this index are being changed",
            hint="retry later, with many documents in one request",
            headers={"Retry-After": "1"},
        )
    async with entry.writing:
        report = await service.aside(_apply_change, service, entry, documents, body.get("remove") or [])
    data: dict[str, Any] = clean(report.to_json(), service.indexes.folders)
    return json_reply(data)


def _apply_change(
    service: Service, entry: OpenIndex, documents: list[Document], remove: list[str]
) -> BuildReport:
    """Update the index, on a thread.

    The index keeps its build settings; a build stops when the service does.
    """
    settings = {n: v for n, v in service.options.settings.items() if n in names("run")}
    with Index.open(entry.index.path, settings=Settings(**settings)) as index:
        report = index.update(add=documents, remove=remove, progress=lambda _: not service.stopping)
    entry.index.refresh(warm=True)
    service.indexes.on_change()
    return report
