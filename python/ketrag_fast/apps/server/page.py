"""The web page at `/`, from files of this package that are read once. Its content security policy allows
only its own script and requests to this service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ketrag_fast.page.assets import SCRIPTS, content

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/graph.css": ("graph.css", "text/css; charset=utf-8"),
    **{f"/{name}": (name, "text/javascript; charset=utf-8") for name in SCRIPTS},
}
"""The name and type of the file at each path."""


def _endpoint(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY, "Content-Type": kind}
        return Response(content(name), headers=headers)

    return serve


def routes() -> list[Route]:
    """Return the routes of the page's files. Requests cannot name other files."""
    return [Route(path, _endpoint(name, kind)) for path, (name, kind) in FILES.items()]
