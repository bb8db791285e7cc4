"""The ASGI application: routes, startup and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ketrag_fast.apps.server import (
    answering,
    documents,
    graph_views,
    openai_protocol,
    openapi,
    page,
    retrieving,
    searching,
)
from ketrag_fast.apps.server import inspect as inspection
from ketrag_fast.apps.server.guard import Guard
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import Problem, log
from ketrag_fast.apps.server.service import Service
from ketrag_fast.errors import KetragError

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(options: ServerOptions, token: str | None = None) -> Starlette:
    """Create the application of one worker and open its indexes. If `token` is given, requests must send it.
    Raises what `Index.open` raises.
    """
    service = Service(options, token)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        fresh = asyncio.create_task(service.indexes.stay_fresh(options.refresh_seconds))
        warm = asyncio.create_task(_warm(service))
        try:
            yield
        finally:
            service.stopping = True
            for task in (fresh, warm):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await asyncio.to_thread(service.close)

    app = Starlette(
        routes=_routes(options),
        middleware=[Middleware(_wrap_guard, service=service)],
        exception_handlers={HTTPException: _http},
        lifespan=life,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.shapes = shapes = {
        "retrieve": retrieving.shape(service),
        "search": searching.search_shape(service),
        "grep": searching.grep_shape(service),
        "ask": answering.shape(service),
        "documents": documents.SHAPE,
        "embeddings": openai_protocol.EMBEDDINGS,
        "chat": openai_protocol.chat_shape(service),
    }
    app.state.openapi = openapi.document(service, shapes)
    return app


def _wrap_guard(app: ASGIApp, service: Service) -> Guard:
    return Guard(app, service)


async def _warm(service: Service) -> None:
    try:
        await asyncio.to_thread(service.indexes.load, lambda: not service.stopping)
    except KetragError as error:  # questions report the same; `auto` works without vectors
        log.error("an index or its embedding model cannot be loaded: %s", error.message)
    service.indexes.on_change()  # requests are planned again, with the loaded models
    service.ready = True


def _routes(options: ServerOptions) -> list[Route]:
    return [
        Route("/v1/retrieve", retrieving.retrieve, methods=["POST"]),
        Route("/v1/search", searching.search, methods=["POST"]),
        Route("/v1/text", searching.text),
        Route("/v1/grep", searching.grep, methods=["POST"]),
        Route("/v1/ask", answering.ask, methods=["POST"]),
        Route("/v1/indexes", inspection.indexes),
        Route("/v1/stats", inspection.stats),
        Route("/v1/fields", inspection.fields),
        Route("/v1/builds", inspection.builds),
        Route("/v1/themes", inspection.themes),
        Route("/v1/graph", inspection.graph),
        Route("/v1/graph-view", graph_views.graph_view),
        Route("/v1/graph/{name:path}", inspection.node),
        Route("/v1/passages/{unit}", inspection.passage),
        Route("/v1/documents", documents.documents_endpoint, methods=["GET", "POST"]),
        Route("/v1/models", openai_protocol.models),
        Route("/v1/models/{name}", openai_protocol.model),
        Route("/v1/embeddings", openai_protocol.embeddings, methods=["POST"]),
        Route("/v1/chat/completions", openai_protocol.chat, methods=["POST"]),
        Route("/health", inspection.health),
        Route("/ready", inspection.ready),
        Route("/metrics", inspection.metrics),
        Route("/openapi.json", openapi.serve),
        *(page.routes() if options.page else ()),
    ]


async def _http(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    codes = {
        404: ("not_found", "unknown path"),
        405: ("method_not_allowed", "wrong HTTP method"),
    }
    code, message = codes.get(status, ("bad_request", "invalid request"))
    raise Problem(status, code, message, headers=dict(getattr(error, "headers", None) or {}))
