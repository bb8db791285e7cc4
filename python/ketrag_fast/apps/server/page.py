"""The page at `/`: three files of this package, read once.

Its content security policy allows its own script and requests to this service, and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}


@cache
def _content(name: str) -> bytes:
    return (files("ketrag_fast.apps.server") / "static" / name).read_bytes()


def _endpoint(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "Content-Type": kind}
        return Response(_content(name), headers=headers)

    return serve


def routes() -> list[Route]:
    """Return the routes of the page's files. No path of a request names a file."""
    return [Route(path, _endpoint(name, kind)) for path, (name, kind) in _FILES.items()]
