"""JSON requests to an endpoint, with every fault typed: retried where it may pass, final where not.

Redirects are not followed and proxies are not used, so a key goes to the named host and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from ketrag_fast.backends.patience import Patience
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
_STREAM: Final = "text/event-stream"
T = TypeVar("T")


class TooLongError(BackendError):
    """The endpoint says that a text is longer than its model reads."""


class RefusedError(BackendError):
    """The endpoint answered with a status that will not pass; `status` is it."""

    def __init__(self, message: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class UnreachableError(BackendError):
    """Nobody listens at the address."""


class _PassingError(Exception):
    """A fault that may be gone at the next attempt."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


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


Stopped = Callable[[], None]
"""Raises when the work is to end; called between the pieces of a reply."""


class Client:
    """One connection, kept open; not for several threads at once, but for `abort`. `timeout` is in seconds,
    for one reply, and may be set anew before each. `began` is when the attempt that is under way was sent
    (monotonic seconds), None between attempts.
    """

    def __init__(self, parts: SplitResult, path: str, key: str | None, patience: Patience) -> None:
        self._parts = parts
        self._path = path
        self._key = key
        self._patience = patience
        self.timeout = patience.timeout
        self.began: float | None = None
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def abort(self) -> None:
        """Ends the connection from another thread: who waits for a reply gets a fault at once."""
        sock = getattr(self._connection, "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def post(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Any:
        """The reply's JSON. `limit` is the most bytes of it; `stopped` raises when the work is to end."""
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return self._patiently(lambda: self._once("POST", data, limit, stopped), stopped)

    def get(self, limit: int, stopped: Stopped) -> Any:
        """The JSON at the address."""
        return self._patiently(lambda: self._once("GET", None, limit, stopped), stopped)

    def events(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Iterator[Any]:
        """The JSON of each event of a streamed reply, as they come; of a reply that is not streamed, its
        JSON as the only one. Retried until the first event; after it a fault is final.
        """
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        reply = self._patiently(lambda: self._begun("POST", data, limit, stopped), stopped)
        try:
            if _kind(reply) != _STREAM:
                yield self._json(reply, limit, stopped)
                return
            yield from self._streamed(reply, limit, stopped)
        except _PassingError as fault:
            self.close()
            raise BackendError(f"{self._where} broke off: {fault}", hint="ask again") from fault
        except GeneratorExit:
            self.close()  # what was not read would stand before the next reply
            raise

    def _patiently(self, once: Callable[[], T], stopped: Stopped) -> T:
        patience = self._patience
        for attempt in range(1, patience.attempts + 1):
            stopped()
            try:
                return once()
            except _PassingError as fault:
                self.close()
                stopped()
                self.began = None
                if attempt == patience.attempts:
                    kind = (
                        UnreachableError
                        if isinstance(fault.__cause__, ConnectionRefusedError)
                        else BackendError
                    )
                    raise kind(
                        f"{self._where} failed {attempt} times, last: {fault}",
                        hint="see the server's log; what was done before is kept",
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
                    hint="try again later; what was done before is kept",
                )
            pause = max(pause, asked)
        until = time.monotonic() + pause
        while (left := until - time.monotonic()) > 0:
            stopped()
            time.sleep(min(left, 0.1))

    def _once(self, method: str, data: bytes | None, limit: int, stopped: Stopped) -> Any:
        return self._json(self._begun(method, data, limit, stopped), limit, stopped)

    def _begun(
        self, method: str, data: bytes | None, limit: int, stopped: Stopped
    ) -> http.client.HTTPResponse:
        """The reply with its head read; only one of status 200."""
        headers = {"Accept": f"application/json, {_STREAM}"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self.began = time.monotonic()
        try:
            connection = self._connect()
            connection.request(method, self._path, data, headers)
            reply = connection.getresponse()
            if reply.status == 200:
                return reply
            content = _read(reply, min(limit, _SLICE), self.timeout, stopped)
        except (OSError, http.client.HTTPException) as error:
            raise _PassingError(f"{type(error).__name__}: {error}") from error
        if content is None:
            self.close()
        self._refused(reply, content or b"")
        raise BackendError(f"{self._where} answered {reply.status}")

    def _json(self, reply: http.client.HTTPResponse, limit: int, stopped: Stopped) -> Any:
        try:
            content = _read(reply, limit, self.timeout, stopped)
        except (OSError, http.client.HTTPException) as error:
            raise _PassingError(f"{type(error).__name__}: {error}") from error
        if content is None:
            self.close()
            raise BackendError(f"{self._where} sent more than {limit:,} bytes for this request")
        kind = _kind(reply)
        if kind != "application/json" and not kind.endswith("+json"):
            raise BackendError(
                f"{self._where} answered with {kind or 'no content type'} where application/json is due",
                hint="check the address: it should end in /v1",
            )
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _PassingError(f"a reply that is no JSON ({error})") from error

    def _streamed(self, reply: http.client.HTTPResponse, limit: int, stopped: Stopped) -> Iterator[Any]:
        """Events of `text/event-stream`: lines that begin with "data:", up to "[DONE]" or the end."""
        size = 0
        while True:
            stopped()
            try:
                line = reply.readline(limit + 1)
            except (OSError, http.client.HTTPException) as error:
                raise _PassingError(f"{type(error).__name__}: {error}") from error
            size += len(line)
            if size > limit:
                self.close()
                raise BackendError(f"{self._where} sent more than {limit:,} bytes for this request")
            if not line:
                raise _PassingError("the stream ended before it was done")
            name, _, value = line.decode("utf-8", "replace").partition(":")
            if name != "data":
                continue
            if value.strip() == "[DONE]":
                _read(reply, _SLICE, self.timeout, stopped)  # the connection is free again
                return
            try:
                yield json.loads(value)
            except (ValueError, RecursionError) as error:
                raise _PassingError(f"an event that is no JSON ({error})") from error

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
        key = reply.status in (401, 403)
        hint = (
            "set the key in KETRAG_OPENAI_API_KEY (or OPENAI_API_KEY)"
            if key
            else "check address and model name"
        )
        raise RefusedError(message, reply.status, hint=hint)

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(host, port, context=context)
            else:
                self._connection = http.client.HTTPConnection(host, port)
        self._connection.timeout = self.timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(self.timeout)
        return self._connection

    @property
    def _where(self) -> str:
        return f"{self._parts.scheme}://{self._parts.netloc}{self._path}"


def _kind(reply: http.client.HTTPResponse) -> str:
    return (reply.getheader("Content-Type") or "").split(";")[0].strip().lower()


def _read(reply: http.client.HTTPResponse, limit: int, seconds: float, stopped: Stopped) -> bytes | None:
    """The whole content, or None if it is longer than `limit`; a cut reply raises IncompleteRead, one that
    does not end in time TimeoutError, however steadily it trickles.
    """
    parts, size, until = [], 0, time.monotonic() + seconds
    while part := reply.read1(_SLICE):
        stopped()
        parts.append(part)
        size += len(part)
        if size > limit:
            return None
        if time.monotonic() > until:
            raise TimeoutError(f"no whole reply after {seconds:g} s")
    if reply.length:  # read1(n) does not say itself that the content was cut
        raise http.client.IncompleteRead(b"".join(parts), reply.length)
    reply.close()  # nor that it is read: the next request would find the connection busy
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
    if "not support" in plain or "unsupported" in plain:  # of a parameter, "max_tokens" for one
        return False
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
