"""Checks host, origin and token of every request, and adds security headers to every reply."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ketrag_fast.apps.server.callers import QUESTION, forbidden, set_user, user_of
from ketrag_fast.apps.server.options import is_local
from ketrag_fast.apps.server.replies import (
    JSON,
    LATE,
    Problem,
    error_json,
    json_bytes,
    log,
    log_text,
    status_of,
    stopping,
)
from ketrag_fast.errors import KetragError
from ketrag_fast.page.assets import FILES

if TYPE_CHECKING:
    from ketrag_fast.apps.server.service import Service
    from ketrag_fast.apps.server.users import User

_OPEN: Final = frozenset((*FILES, "/health", "/ready", "/openapi.json"))
"""Paths that need no token, because they reveal nothing about any document."""
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
"""Security headers of every reply."""
_HOST: Final = re.compile(r"(?:\[[0-9A-Za-z:.%]+\]|[^\[\]:/?#@\\,\s]+)(?::\d*)?")
_WRITING: Final = ("/v1/documents", "/v1/uploads")
"""Paths that need no permission to query."""
_UNHURRIED: Final = frozenset(("/v1/ask", "/v1/chat/completions", "/v1/documents", "/v1/uploads", "/mcp"))
"""Routes that do not count as slow: they wait for a language model, an upload or a build."""
_ROUTES: Final = "/v1/"
_SINGLE: Final = frozenset(
    (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"transfer-encoding")
)
"""Headers that must not be repeated: the service and a proxy in front of it might each use another one."""

_LATE: Final = LATE.encode()


class Guard:
    """The outermost layer of the application, which turns every exception into a typed error reply."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        options = service.options
        self._hosts = frozenset(host.lower() for host in options.hosts)
        self._any_host = service.accepts_any_host
        self._origins = frozenset(options.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        began = time.perf_counter() - float(headers.get(_LATE, 0.0))
        origin = headers.get(b"origin", b"").decode("latin-1") if b"origin" in headers else None
        extra = list(HEADERS)
        status = 499
        begun = False

        async def out(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            _check_unambiguous(scope)
            self._host(headers)
            if origin is not None and _is_foreign(origin, headers):
                if origin not in self._origins:
                    raise Problem(
                        403,
                        "foreign_origin",
                        "pages of other origins may not use this service",
                        hint="start it with --allow-origin URL to permit one",
                    )
                extra += [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]
                if scope["method"] == "OPTIONS":
                    await _preflight(scope, receive, out)
                    return
            if scope["path"] not in _OPEN:
                user = self._authorised(headers)
                set_user(scope, user)
                if "read" not in user.may and scope["path"] not in _WRITING:
                    raise forbidden(user, "read")
                if scope["path"].startswith(_ROUTES) and not self._service.stopping:
                    await self._service.looks.wait()
                await self._service.prepare(user)
            if self._service.stopping and scope["path"].startswith(_ROUTES):
                raise stopping()
            await self._app(scope, receive, out)
        except asyncio.CancelledError:
            if begun or not self._service.stopping:
                raise
            await self.reply(stopping(), scope)(scope, receive, out)
        except Exception as error:  # noqa: BLE001 - a reply with a code, never a traceback
            if begun or getattr(error, "status", 500) == 499:
                if not isinstance(error, Problem):
                    log.exception("a reply was interrupted at %s", log_text(scope["path"]))
                return
            reply = self.reply(error, scope)
            if reply.status_code == 429:
                self._service.metrics.refused.inc()
            await reply(scope, receive, out)
        finally:
            route = _route(scope)
            took = time.perf_counter() - began
            self._service.metrics.requests.labels(route, str(status)).inc()
            self._service.metrics.seconds.labels(route).observe(took)
            question = scope.get(QUESTION)
            self._service.log.add(
                user_of(scope).name,
                scope["method"],
                route,
                status,
                took,
                may_be_slow=route not in _UNHURRIED,
                question=question if isinstance(question, str) else None,
            )

    def reply(self, error: Exception, scope: Scope) -> Response:
        """Return the reply to a request that failed."""
        if not isinstance(error, KetragError):
            log.error("internal error at %s", log_text(scope["path"]), exc_info=error)
            error = Problem(500, "internal", "internal error; see the log of the service")
        data: dict[str, Any] = error_json(error, self._service.indexes.folders)
        status = status_of(error)
        if scope["path"].startswith(OPENAI):
            data = openai_error(data, status, getattr(error, "param", None))
        return Response(json_bytes(data), status, getattr(error, "headers", None), JSON)

    def _host(self, headers: Mapping[bytes, bytes]) -> None:
        """Reject unknown host names, which may be a DNS rebinding attack."""
        if self._any_host:
            return
        name = host_of(headers.get(b"host", b"").decode("latin-1"))
        if name is None or not (is_local(name) or name in self._hosts or name == self._service.options.host):
            raise Problem(
                421, "unknown_host", "the request names another host", hint="--allow-host NAME permits one"
            )

    def _authorised(self, headers: Mapping[bytes, bytes]) -> User:
        """Return the user of the token of a request. Raises Problem 401 if the token is missing or wrong."""
        kind, _, secret = headers.get(b"authorization", b"").partition(b" ")
        has_token = kind.lower() == b"bearer"
        token = secret.strip().decode("latin-1") if has_token else ""
        user = self._service.user_of(token) if has_token or not self._service.has_tokens else None
        if user is None:
            raise Problem(
                401,
                "unauthorized",
                "the token is missing or wrong",
                hint="send it as Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return user


OPENAI: Final = ("/v1/chat/", "/v1/embeddings", "/v1/models")
"""Paths whose errors have OpenAI's format."""


def openai_error(data: dict[str, Any], status: int, param: str | None = None) -> dict[str, Any]:
    """Return a typed error in OpenAI's format."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    message = data["message"] if not data["hint"] else f"{data['message']} ({data['hint']})"
    return {"error": {"message": message, "type": kind, "param": param, "code": data["code"]}}


def _is_foreign(origin: str, headers: Mapping[bytes, bytes]) -> bool:
    try:
        return urlsplit(origin).netloc.lower() != headers.get(b"host", b"").decode("latin-1").lower()
    except ValueError:
        return True


def host_of(text: str) -> str | None:
    """Return the host of a `Host` header without its port; None if it is invalid."""
    if _HOST.fullmatch(text) is None:  # a user, path or query, which a proxy may parse differently
        return None
    try:
        return urlsplit(f"//{text}").hostname
    except ValueError:
        return None


def _check_unambiguous(scope: Scope) -> None:
    """Raise Problem 400 for a repeated header, or two headers that give the body different lengths."""
    names = [name for name, _ in scope["headers"] if name in _SINGLE]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is None and not (b"content-length" in names and b"transfer-encoding" in names):
        return
    what = "Content-Length and Transfer-Encoding" if twice is None else f"{twice.decode()} more than once"
    raise Problem(
        400,
        "ambiguous_headers",
        f"the request has {what}",
        hint="send each of these headers once",
        headers={"Connection": "close"},
    )


def _route(scope: Scope) -> str:
    """Return the route of a request, as a metric label: a label for each path would let clients use up
    memory."""
    route = scope.get("route")
    return str(getattr(route, "path", None) or "other")


async def _preflight(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {
        "Access-Control-Allow-Methods": "GET, POST, DELETE",
        "Access-Control-Allow-Headers": "authorization, content-type",
        "Access-Control-Max-Age": "600",
    }
    await Response(b"", 204, headers)(scope, receive, send)
