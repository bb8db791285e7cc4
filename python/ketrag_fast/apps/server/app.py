"""The application: routes, and what happens when it starts and stops."""

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

from ketrag_fast.apps.server import answering, documents, health, openai_protocol, openapi, page, retrieving
from ketrag_fast.apps.server import inspect as looking
from ketrag_fast.apps.server.guard import Guard
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import Problem, log
from ketrag_fast.apps.server.service import Service
from ketrag_fast.errors import KetragError

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(options: ServerOptions, token: str | None = None) -> Starlette:
    """The application of one worker; its indexes are open when this returns. `token` is what requests must
    show. Raises what `Index.open` raises.
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
        await asyncio.to_thread(service.indexes.load)
    except KetragError as error:  # a question says the same; `auto` goes on without vectors
        log.error("a model of questions cannot be used: %s", error.message)
    service.ready = True


def _routes(options: ServerOptions) -> list[Route]:
    return [
        Route("/v1/retrieve", retrieving.retrieve, methods=["POST"]),
        Route("/v1/ask", answering.ask, methods=["POST"]),
        Route("/v1/indexes", looking.indexes),
        Route("/v1/stats", looking.stats),
        Route("/v1/graph", looking.graph),
        Route("/v1/graph/{name:path}", looking.node),
        Route("/v1/passages/{unit}", looking.passage),
        Route("/v1/documents", documents.documents_endpoint, methods=["GET", "POST"]),
        Route("/v1/models", openai_protocol.models),
        Route("/v1/models/{name}", openai_protocol.model),
        Route("/v1/embeddings", openai_protocol.embeddings, methods=["POST"]),
        Route("/v1/chat/completions", openai_protocol.chat, methods=["POST"]),
        Route("/health", health.health),
        Route("/ready", health.ready),
        Route("/metrics", health.metrics),
        Route("/openapi.json", openapi.serve),
        *(page.routes() if options.page else ()),
    ]


async def _http(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    codes = {
        404: ("not_found", "there is nothing here"),
        405: ("method_not_allowed", "another method is due"),
    }
    code, message = codes.get(status, ("bad_request", "the request makes no sense"))
    raise Problem(status, code, message, headers=dict(getattr(error, "headers", None) or {}))
