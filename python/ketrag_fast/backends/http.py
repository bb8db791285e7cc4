"""One JSON request to an endpoint, with every fault typed: retried where it may pass, final where not.

Redirects are not followed and proxies are not used, so a key goes to the named host and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from ketrag_fast.errors import BackendError, ConfigError, NetworkForbidden

_PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_ABOUT_LENGTH: Final = (
    "too long",
    "too large",
    "context length",
    "context size",
    "maximum input",
    "max_tokens",
    "exceed",
    "longer than",
)
_LONGEST_WAIT: Final = 300.0
_SLICE: Final = 1 << 16


class TooLongError(BackendError):
    """The endpoint says that a text is longer than its model reads."""


class _PassingError(Exception):
    """A fault that may be gone at the next attempt."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try: attempts, the first pause in seconds (doubled each time), seconds for one reply."""

    attempts: int = 6
    pause: float = 0.5
    timeout: float = 120.0


def endpoint(url: str, *, offline: bool) -> SplitResult:
    """The parts of a URL, checked; loopback alone where the network is forbidden."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{url!r} has no valid port") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError(f"{url!r} is not an http or https address")
    if parts.username or parts.password:
        raise ConfigError(
            "the address of an endpoint must not hold a password", hint="keys come from the environment alone"
        )
    if offline and not is_loopback(parts.hostname):
        raise NetworkForbidden(
            f"the network is forbidden, and {parts.hostname} is not on this machine",
            hint="leave out --offline, or serve the model on 127.0.0.1",
        )
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine by definition (no look-up is made)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Client:
    """One connection, kept open; not for several threads at once."""

    def __init__(self, parts: SplitResult, path: str, key: str | None, patience: Patience) -> None:
        self._parts = parts
        self._path = path
        self._key = key
        self._patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def post(self, body: Mapping[str, Any], limit: int, stopped: Callable[[], None]) -> Any:
        """The reply's JSON. `limit` is the most bytes of it; `stopped` raises when the work is to end."""
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        patience = self._patience
        for attempt in range(1, patience.attempts + 1):
            stopped()
            try:
                return self._once(data, limit)
            except _PassingError as fault:
                self.close()
                if attempt == patience.attempts:
                    raise BackendError(
                        f"{self._where} failed {attempt} times, last: {fault}",
                        hint="see the server's log; what was embedded is kept",
                    ) from fault
                self._wait(attempt, fault.wait, stopped)
        raise ConfigError("an endpoint needs at least one attempt")

    def _wait(self, attempt: int, asked: float | None, stopped: Callable[[], None]) -> None:
        jitter = 0.5 + random.random()  # noqa: S311 - spreads retries, protects nothing
        pause = min(self._patience.pause * 2 ** (attempt - 1), 30.0) * jitter
        if asked is not None:
            if asked > _LONGEST_WAIT:
                raise BackendError(
                    f"{self._where} asks to wait for {asked:.0f} s",
                    hint="try again later; what was embedded is kept",
                )
            pause = max(pause, asked)
        until = time.monotonic() + pause
        while (left := until - time.monotonic()) > 0:
            stopped()
            time.sleep(min(left, 0.1))

    def _once(self, data: bytes, limit: int) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection = self._connect()
            connection.request("POST", self._path, data, headers)
            reply = connection.getresponse()
            content = _read(reply, limit if reply.status == 200 else min(limit, _SLICE))
        except (OSError, http.client.HTTPException) as error:
            raise _PassingError(f"{type(error).__name__}: {error}") from error
        if content is None:
            self.close()
            if reply.status == 200:
                raise BackendError(f"{self._where} sent more than {limit:,} bytes for this request")
            content = b""
        if reply.status != 200:
            self._refused(reply, content)
        kind = (reply.getheader("Content-Type") or "").split(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise BackendError(
                f"{self._where} answered with {kind or 'no content type'} where application/json is due",
                hint="check the address: it should end in /v1",
            )
        try:
            return json.loads(content)
        except ValueError as error:
            raise _PassingError(f"a reply that is no JSON ({error})") from error

    def _refused(self, reply: http.client.HTTPResponse, content: bytes) -> None:
        text = _reason(content)
        if self._key:
            text = text.replace(self._key, "[key]")
        if reply.status in _PASSING:
            raise _PassingError(
                f"status {reply.status}: {text}", _retry_after(reply.getheader("Retry-After"))
            )
        message = f"{self._where} answered {reply.status} {reply.reason}: {text}"
        if reply.status in (400, 413, 422) and _about_length(text):
            raise TooLongError(message)
        if reply.status in (401, 403):
            raise BackendError(message, hint="set the key in KETRAG_OPENAI_API_KEY (or OPENAI_API_KEY)")
        raise BackendError(message, hint="check address and model name")

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port, seconds = self._parts.hostname or "", self._parts.port, self._patience.timeout
            if self._parts.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=seconds)
        return self._connection

    @property
    def _where(self) -> str:
        return f"{self._parts.scheme}://{self._parts.netloc}{self._path}"


def _read(reply: http.client.HTTPResponse, limit: int) -> bytes | None:
    """The whole content, or None if it is longer than `limit`; a cut reply raises IncompleteRead."""
    parts, size = [], 0
    while part := reply.read(_SLICE):
        parts.append(part)
        size += len(part)
        if size > limit:
            return None
    if reply.length:  # read(n) does not say itself that the content was cut
        raise http.client.IncompleteRead(b"".join(parts), reply.length)
    return b"".join(parts)


def _reason(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        error = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except ValueError:
        pass
    return " ".join(text.split())[:300] or "no reason given"


def _about_length(text: str) -> bool:
    plain = text.lower()
    return any(word in plain for word in _ABOUT_LENGTH)


def _retry_after(value: str | None) -> float | None:
    if not value:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return None
