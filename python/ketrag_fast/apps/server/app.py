"""The ASGI application: routes, startup and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ketrag_fast.apps.server import answering, openai_protocol, retrieval, shards
from ketrag_fast.apps.server.endpoints import openapi_document, routes
from ketrag_fast.apps.server.guard import Guard
from ketrag_fast.apps.server.inspect import health_endpoints, index_endpoints
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.replies import Problem, json_reply, log
from ketrag_fast.apps.server.service import Service
from ketrag_fast.apps.server.uploads import upload_endpoints
from ketrag_fast.errors import KetragError
from ketrag_fast.page.assets import FILES, content

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""The page may use only its own files and this service."""


def create_app(options: ServerOptions, token: str | None = None) -> Starlette:
    """Create the application of one worker and open its indexes. If `token` is given, requests must send it.

    Raises what `Index.open` raises.
    """
    service = Service(options, token)
    endpoints = [
        *retrieval.endpoints(service),
        *shards.endpoints(service),
        *answering.endpoints(service),
        *index_endpoints(),
        *upload_endpoints(),
        *openai_protocol.endpoints(service),
        *health_endpoints(),
    ]
    document = openapi_document(endpoints, has_token=service.has_tokens)

    async def describe(request: Request) -> Response:
        return json_reply(document)

    pages = [Route(path, _page_file(*FILES[path])) for path in FILES] if options.page else []
    app = Starlette(
        routes=[*routes(endpoints), Route("/openapi.json", describe), *pages],
        middleware=[Middleware(Guard, service=service)],
        exception_handlers={HTTPException: _raise_problem},
        lifespan=_life,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.openapi = document
    return app


@contextlib.asynccontextmanager
async def _life(app: Starlette) -> AsyncIterator[None]:
    service: Service = app.state.service
    warm = asyncio.create_task(asyncio.to_thread(_warm, service))
    async with service.indexes.fresh(service.options.refresh_seconds), service.watching_users():
        try:
            yield
        finally:
            service.stopping = True
            warm.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await warm
    await asyncio.to_thread(service.close)


def _warm(service: Service) -> None:
    """Load the models and read the indexes, so that the first questions do not wait for them."""
    try:
        for entry in service.indexes:
            entry.index.inspect.warm(lambda: not service.stopping)
    except KetragError as error:  # questions report the same; `auto` works without vectors
        log.error("an index or its embedding model cannot be loaded: %s", error.message)
    service.indexes.on_change()  # requests are planned again, with the loaded models
    service.ready = True


def _page_file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "Content-Type": kind}
        return Response(content(name), headers=headers)

    return serve


async def _raise_problem(request: Request, error: Exception) -> Response:
    """Raise an error of Starlette as a Problem."""
    status = getattr(error, "status_code", 500)
    codes = {404: ("not_found", "unknown path"), 405: ("method_not_allowed", "wrong HTTP method")}
    code, message = codes.get(status, ("bad_request", "invalid request"))
    raise Problem(status, code, message, headers=dict(getattr(error, "headers", None) or {}))
