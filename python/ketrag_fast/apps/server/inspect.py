"""Endpoints about an index: statistics, graphs, documents, passages and health."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from starlette.responses import Response

from ketrag_fast.apps.server.endpoints import INDEX, Call, Endpoint, Field, Shape
from ketrag_fast.apps.server.replies import Problem, stopping, without_paths
from ketrag_fast.apps.server.service import Service
from ketrag_fast.apps.server.users import ABILITIES
from ketrag_fast.base.config import Settings, names
from ketrag_fast.errors import InputError
from ketrag_fast.index import Index
from ketrag_fast.types import BuildReport, Document, Listed

_MOST: Final = 1000
_LARGEST: Final = 10**12
_NAME: Final = 500
_LARGEST_ID: Final = 1000
_ORDERS: Final[dict[str, Callable[[Listed], Any]]] = {
    "title": lambda one: (one.title or one.document).casefold(),
    "document": lambda one: one.document.casefold(),
    "units": lambda one: one.units,
}
"""Orders of the list of documents; a minus sign before the name reverses them."""


def _count(text: str, most: int = _LARGEST, least: int = 0) -> Field:
    return Field("integer", text, least=least, most=most)


_GRAPH: Final[Shape] = {
    "index": INDEX,
    "graph": Field("string", "such as walk; default: the first graph of the index"),
    "around": Field(
        "array",
        "names of nodes, or numbers such as #12; repeatable",
        most=100,
        items=Field("string", "a name", required=True, most=_NAME),
    ),
    "to": Field("string", "draw the shortest path from `around` to this node", most=_NAME),
    "question": Field("string", "draw the surroundings of the passages that answer it"),
    "limit": _count("maximum number of nodes", 100_000, least=1),
    "filter": Field("string", "draw the graph of the documents with matching metadata only"),
    "generation": _count("generation that the numbers in `around` are from"),
}
_PASSAGE: Final[Shape] = {
    "unit": Field("integer", "number of a passage", required=True, least=0),
    "index": INDEX,
    "before": _count("number of passages before it", 20),
    "after": _count("number of passages after it", 20),
    "generation": _count("generation that the number is from"),
}
_CHARACTER: Final[Shape] = {
    "document": Field("string", "id of a document", required=True, least=1, most=_LARGEST_ID),
    "at": _count("a character of its text (default 0)"),
    **{name: field for name, field in _PASSAGE.items() if name in ("index", "before", "after")},
}
_LIST: Final[Shape] = {
    "index": INDEX,
    "first": _count("number of the first document to list"),
    "count": _count("maximum number of documents", _MOST),
    "containing": Field("string", "text that the id or title must contain", most=_NAME),
    "filter": Field("string", "list only documents with matching metadata"),
    "theme": Field("string", "list only documents of this theme of `/v1/themes`, such as 2.1"),
    "sort": Field(
        "string",
        "order of the list (default: that of the index)",
        choices=tuple(f"{sign}{name}" for name in _ORDERS for sign in ("", "-")),
    ),
    "preview": _count("characters of the text to show", _MOST),
}
_CHANGE: Final[Shape] = {
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
                "id": Field("string", "unique id", required=True, least=1, most=_LARGEST_ID),
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


def index_endpoints() -> list[Endpoint]:
    """Return the endpoints that show or change an index."""
    one = {"index": INDEX}
    name = Field("string", "name of an entity, a concept, ...", required=True, least=1, most=_NAME)
    kind = Field("string", "entity, concept, ...", most=_NAME)
    themes_filter = Field("string", "themes of the documents with matching metadata only")
    past = _count("maximum number of past builds", _MOST)
    return [
        Endpoint("GET", "/v1/indexes", indexes, "List the indexes"),
        Endpoint("GET", "/v1/stats", stats, "Statistics of an index", one),
        Endpoint("GET", "/v1/fields", fields, "Metadata fields of the documents, for filters", one),
        Endpoint(
            "GET",
            "/v1/builds",
            builds,
            "Progress of a build that runs now, and past builds",
            {**one, "count": past},
        ),
        Endpoint(
            "GET", "/v1/themes", themes, "What the documents are about", {**one, "filter": themes_filter}
        ),
        Endpoint("GET", "/v1/graph", graph, "Kinds of names in the graphs of an index", one),
        Endpoint(
            "GET",
            "/v1/graph/{name:path}",
            node,
            "Look up a name in the graphs",
            {"name": name, **one, "kind": kind},
        ),
        Endpoint(
            "GET",
            "/v1/graph-view",
            graph_view,
            "Draw a graph, or the surroundings of names or of a question",
            _GRAPH,
        ),
        Endpoint(
            "GET",
            "/v1/passages",
            passage_at,
            "Read the passage at a character of a document and its neighbours",
            _CHARACTER,
        ),
        Endpoint(
            "GET",
            "/v1/passages/{unit}",
            passage,
            "Read a passage and its neighbours, with the metadata of the document",
            _PASSAGE,
        ),
        Endpoint("GET", "/v1/documents", documents, "List documents with their metadata", _LIST),
        Endpoint(
            "POST",
            "/v1/documents",
            change_documents,
            "Add and remove documents, if the service allows it",
            _CHANGE,
            "ketrag/index/1",
        ),
    ]


def health_endpoints() -> list[Endpoint]:
    """Return the endpoints for monitoring."""
    return [
        Endpoint("GET", "/health", health, "Report whether the process answers", is_open=True),
        Endpoint("GET", "/ready", ready, "Report whether indexes are open and models loaded", is_open=True),
        Endpoint("GET", "/metrics", metrics, "Prometheus metrics", kinds=("text/plain",)),
    ]


def indexes(call: Call) -> dict[str, Any]:
    """Return names, generations and modes of the indexes."""
    rows = [
        {
            "name": entry.name,
            "generation": entry.index.generation,
            "digest": entry.index.digest,
            "documents": entry.index.inspect.document_count,
            "modes": list(entry.index.modes),
            "kinds": list(entry.index.inspect.kinds),
            "graphs": list(entry.index.inspect.graphs()),
            "answers": entry.index.inspect.has_answer_llm,
            "examples": list(entry.index.inspect.examples()),
        }
        for entry in call.indexes
    ]
    user = call.user
    return {
        "schema": "ketrag/indexes/1",
        "indexes": rows,
        "writable": "add" in user.may,
        "user": user.name or None,
        "may": [ability for ability in ABILITIES if ability in user.may],
    }


def stats(call: Call) -> Any:
    """Return statistics of an index."""
    entry = call.entry
    data = {"schema": "ketrag/stats/1", **entry.index.stats(), "path": entry.name}
    return clean(data, call.service.indexes.folders)


def fields(call: Call) -> dict[str, Any]:
    """Return the metadata fields that filters can use."""
    entry = call.entry
    return {
        "schema": "ketrag/fields/1",
        "index": entry.name,
        "fields": list(entry.index.inspect.fields()),
    }


def builds(call: Call) -> dict[str, Any]:
    """Return the progress of a build that runs now, and the past builds."""
    entry = call.entry
    inspect = entry.index.inspect
    return {
        "schema": "ketrag/builds/1",
        "index": entry.name,
        "running": inspect.running_build(),
        "builds": [one.to_json() for one in inspect.builds(call.values.get("count", 20))],
    }


def themes(call: Call) -> dict[str, Any]:
    """Return what the documents are about."""
    entry = call.entry
    found = entry.index.themes(filter=call.values.get("filter"), progress=_in_time(call.service))
    return {**found.to_json(), "index": entry.name}


def graph(call: Call) -> dict[str, Any]:
    """Return the kinds of nodes in the graphs of an index."""
    entry = call.entry
    inspect = entry.index.inspect
    return {
        "schema": "ketrag/graph/1",
        "index": entry.name,
        "kinds": list(inspect.kinds),
        "graphs": list(inspect.graphs()),
        "missing": inspect.missing_graphs(),
    }


def node(call: Call) -> Any:
    """Return an entity, a concept, ... with its neighbours."""
    return call.entry.index.inspect.node(call.values["name"], call.values.get("kind")).to_json()


def graph_view(call: Call) -> dict[str, Any]:
    """Return a picture of a graph, or of the surroundings of names or of a question."""
    entry, values = call.entry, {**call.values}
    _require_generation(call)
    graphs = entry.index.inspect.graphs()
    name = values.pop("graph", None) or next(iter(graphs), None)
    if name is None:
        raise Problem(422, "mode_unavailable", "this index has no graph", hint="ketrag index --modes auto")
    in_time = _in_time(call.service)
    options = {key: value for key, value in values.items() if key not in ("index", "generation")}
    view = entry.index.inspect.graph(name, progress=lambda done, total: in_time((done, total)), **options)
    return {**view.to_json(), "index": entry.name, "graphs": list(graphs)}


def passage(call: Call) -> dict[str, Any]:
    """Return a passage, its neighbours and the metadata of its document."""
    _require_generation(call)
    return _passage(call, call.values["unit"])


def passage_at(call: Call) -> dict[str, Any]:
    """Return the passage at a character of a document, as `passage` does."""
    values = call.values
    return _passage(call, call.entry.index.inspect.unit_at(values["document"], values.get("at", 0)))


def _passage(call: Call, unit: int) -> dict[str, Any]:
    values, inspect = call.values, call.entry.index.inspect
    try:
        spans = inspect.around(unit, values.get("before", 1), values.get("after", 1))
        metadata = inspect.metadata(unit)
    except InputError as error:
        raise Problem(404, "unknown_passage", error.message) from None
    rows = [
        {"unit": one, **span.to_json(), "location": inspect.location(one, span.start, span.end)}
        for one, span in spans
    ]
    return {"schema": "ketrag/passages/1", "unit": unit, "metadata": metadata, "passages": rows}


def documents(call: Call) -> dict[str, Any]:
    """Return ids, titles and metadata of documents, in pages."""
    values, entry = call.values, call.entry
    inspect, sort = entry.index.inspect, values.get("sort", "")
    first, count, length = (values.get("first", 0), values.get("count", 100), values.get("preview", 0))
    chosen: dict[str, Any] = {name: values.get(name) for name in ("filter", "theme")}
    chosen |= {"containing": values.get("containing", ""), "progress": _in_time(call.service)}
    if sort:
        listed = inspect.documents(**chosen)
        listed.sort(key=_ORDERS[sort.removeprefix("-")], reverse=sort.startswith("-"))
        listed = listed[first : first + count]
    else:
        listed = inspect.documents(first, count, **chosen)

    def beginning(one: Listed) -> str:
        return inspect.around(one.unit, 0, 0)[0][1].text[:length] if one.units else ""

    return {
        "schema": "ketrag/documents/1",
        "index": entry.name,
        "total": inspect.document_count,
        "first": first,
        "documents": [one.to_json() | ({"preview": beginning(one)} if length else {}) for one in listed],
    }


async def change_documents(call: Call) -> Any:
    """Change the documents; reply once the new generation is published and in use here."""
    service, body = call.service, call.values
    entry = call.entry
    if not body.get("documents") and not body.get("remove"):
        raise Problem(422, "bad_request", "the request has neither documents nor remove", param="documents")
    if body.get("documents"):
        call.require("add")
    if body.get("remove") or (
        "remove" not in call.user.may
        and await service.aside(existing, call, [one["id"] for one in body["documents"]])
    ):
        call.require("remove")  # a document with the same id is replaced
    added = [
        Document(one["id"], one["text"], one.get("title", ""), one.get("metadata", {}))
        for one in body.get("documents", ())
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
        report = await service.aside(apply_change, service, entry.index, added, body.get("remove", ()))
    return clean(report.to_json(), service.indexes.folders)


def existing(call: Call, ids: list[str]) -> list[str]:
    """Return the ids of documents that the index already has."""
    containing = ids[0] if len(ids) == 1 else ""
    known = {one.document for one in call.entry.index.inspect.documents(containing=containing)}
    return [one for one in ids if one in known]


def apply_change(service: Service, opened: Index, added: list[Document], removed: list[str]) -> BuildReport:
    """Update the index, on a thread. It keeps its build settings; a build stops when the service does."""
    settings = {name: value for name, value in service.options.settings.items() if name in names("run")}
    with Index.open(opened.path, settings=Settings(**settings)) as index:
        report = index.update(add=added, remove=removed, progress=lambda _: not service.stopping)
    opened.refresh(warm=True)
    service.indexes.on_change()
    return report


def _require_generation(call: Call) -> None:
    """Raise Problem 409 if a request has unit numbers of a generation that has been replaced."""
    open_now = call.entry.index.generation
    if call.values.get("generation", open_now) != open_now:
        raise Problem(
            409,
            "generation_replaced",
            f"the index is at generation {open_now} now, and numbers of nodes and passages have changed",
            hint="ask again, without numbers of the earlier generation",
        )


def _in_time(service: Service) -> Callable[[object], bool]:
    """Return a callback that stops work at the deadline of requests, and when the service stops."""
    until = time.monotonic() + service.options.deadline
    return lambda _: time.monotonic() < until and not service.stopping


def clean(data: Any, folders: tuple[tuple[str, str], ...]) -> Any:
    """Remove paths of this machine, which reports of failed files contain, from JSON data."""
    if isinstance(data, dict):
        return {name: clean(value, folders) for name, value in data.items()}
    if isinstance(data, list):
        return [clean(value, folders) for value in data]
    return without_paths(data, folders) if isinstance(data, str) else data


async def health(call: Call) -> dict[str, str]:
    """Reply while the process runs."""
    return {"schema": "ketrag/health/1", "status": "ok"}


async def ready(call: Call) -> dict[str, str]:
    """Reply once indexes are open and models loaded; raise Problem 503 while the service starts or stops."""
    if call.service.stopping:
        raise stopping()
    if not call.service.ready:
        raise Problem(503, "starting", "the service is starting", headers={"Retry-After": "1"})
    return {"schema": "ketrag/health/1", "status": "ready"}


async def metrics(call: Call) -> Response:
    """Return the metrics in Prometheus's format."""
    service = call.service
    if call.user.allow:
        raise Problem(403, "forbidden", f"{call.user.shown} may not see all documents, nor their metrics")
    service.metrics.waiting.set(service.waiting + service.waiting_in_front())
    for entry in service.indexes:
        service.metrics.generation.labels(entry.name).set(entry.index.generation)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
