"""JSON requests to an endpoint with typed errors; temporary faults are retried.

Redirects are not followed and proxies are not used, so a key is only sent to the named host. Keys are
redacted from replies before anything reads them, and no error is chained to a network exception, whose
message and frames may contain the request.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.http.connection import FAULTS, Head, Wire
from ketrag_fast.models.http.connection_pool import Connections
from ketrag_fast.models.http.http_errors import (
    SHOWN,
    RefusedError,
    TooLongError,
    UnreachableError,
    about_length,
    reason_of,
    wait_of,
)
from ketrag_fast.models.http.retry import Patience
from ketrag_fast.secrets import Key, redact_all, redact_bytes, without_keys

_PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT: Final = 300.0
_REASON_BYTES: Final = 1 << 16
_STREAM: Final = "text/event-stream"
T = TypeVar("T")


class _PassingError(Exception):
    """A fault that may be temporary. `nobody`: the connection was refused."""

    def __init__(self, message: str, wait: float | None = None, *, nobody: bool = False) -> None:
        super().__init__(redact_all(message))
        self.wait = wait
        self.nobody = nobody


Stopped = Callable[[], None]
"""Raises to cancel the work; called several times a second while waiting."""


class Client:
    """Sends requests to one path, one at a time; each thread has its own client, and all share `connections`.

    `timeout` is in seconds per attempt, from connecting to the last byte, and may be set before each request.
    `spent` is the duration of attempts since it was set to 0, without the pauses between them.
    """

    def __init__(self, connections: Connections, path: str, key: Key | None, patience: Patience) -> None:
        self._connections = connections
        self._place = connections.place
        self._path = path
        self._key = key
        self._patience = patience
        self._wire: Wire | None = None
        self._began: float | None = None
        self._before = 0.0
        self.timeout = patience.timeout

    @property
    def spent(self) -> float:
        """See the class."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    @spent.setter
    def spent(self, seconds: float) -> None:
        self._before, self._began = seconds, None

    def close(self) -> None:
        """Close the connection of the request in progress."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _keep(self) -> None:
        """Return the connection to the pool."""
        wire, self._wire = self._wire, None
        if wire is not None:
            self._connections.give(wire)

    def post(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Any:
        """Return the JSON of the reply, of up to `limit` bytes; `stopped` raises to cancel."""
        return self._patiently(lambda: self._once("POST", _encode_body(body), limit, stopped), stopped)

    def get(self, limit: int, stopped: Stopped) -> Any:
        """Return the JSON at the address."""
        return self._patiently(lambda: self._once("GET", b"", limit, stopped), stopped)

    def events(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Iterator[Any]:
        """Yield the JSON of each event of a streamed reply; a reply that is not streamed is one event.

        Retried until the first event; later faults are final.
        """
        first = self._patiently(lambda: self._opened_stream(body, limit, stopped), stopped)
        whole = False
        try:
            broken = ""
            try:
                yield from first
                whole = True
            except _PassingError as fault:
                broken = str(fault)
            if broken:
                raise BackendError(f"{self._where} broke off: {broken}", hint="ask again")
        finally:
            self._settle()
            if whole:
                self._keep()
            else:
                self.close()  # unread data would precede the next reply

    # ------------------------------------------------------------ attempts

    def _patiently(self, once: Callable[[], T], stopped: Stopped) -> T:
        patience = self._patience
        for attempt in range(1, patience.attempts + 1):
            stopped()
            try:
                return once()
            except _PassingError as error:
                fault, wait, nobody = str(error), error.wait, error.nobody
            except BaseException:
                self.close()
                raise
            finally:
                self._settle()
            self.close()
            stopped()
            if attempt == patience.attempts:
                times = "once" if attempt == 1 else f"{attempt} times, last"
                text = f"{self._where} failed {times}: {fault}"
                if nobody:
                    hint = "check the address, and whether the server runs there; finished work is kept"
                    raise UnreachableError(text, hint=hint)
                raise BackendError(text, hint="see the server's log; finished work is kept")
            self._wait(attempt, wait, stopped)
        raise ConfigError("an endpoint needs at least one attempt")

    def _settle(self) -> None:
        self._before, self._began = self.spent, None

    def _wait(self, attempt: int, asked: float | None, stopped: Stopped) -> None:
        jitter = 0.5 + random.random()  # noqa: S311 - spreads retries, protects nothing
        pause = min(self._patience.pause * 2 ** (attempt - 1), 30.0) * jitter
        if asked is not None:
            if not asked <= _LONGEST_WAIT:
                raise BackendError(
                    f"{self._where} requests a wait of {asked:.0f} s",
                    hint="try again later; finished work is kept",
                )
            pause = max(pause, asked)
        until = time.monotonic() + pause
        while (left := until - time.monotonic()) > 0:
            stopped()
            time.sleep(min(left, 0.1))

    # ------------------------------------------------------------ one attempt

    def _once(self, method: str, data: bytes, limit: int, stopped: Stopped) -> Any:
        look = self._clock(stopped)
        found = self._json(self._head(method, data, limit, look), limit, look)
        self._keep()
        return found

    def _opened_stream(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Iterator[Any]:
        """Read the head of a reply (and the content, if not streamed) and return its events."""
        look = self._clock(stopped)
        head = self._head("POST", _encode_body(body), limit, look)
        if head.kind != _STREAM:
            return iter([self._json(head, limit, look)])
        return self._streamed(limit, look)

    def _clock(self, stopped: Stopped) -> Stopped:
        self._began = time.monotonic()
        end = self._began + self.timeout

        def look() -> None:
            stopped()
            if time.monotonic() > end:
                raise TimeoutError(f"no complete reply after {self.timeout:g} s")

        return look

    def _on_wire(self, work: Callable[[], T]) -> T:
        """Run `work` on the connection; raise its faults without frames and causes."""
        try:
            return work()
        except FAULTS as error:
            fault = f"{type(error).__name__}: {redact_all(str(error))}"[:SHOWN]
            ended: BaseException = _PassingError(fault, nobody=isinstance(error, ConnectionRefusedError))
        except BaseException as error:  # noqa: BLE001 - raised again, from here
            ended = error
        raise ended.with_traceback(None)

    def _head(self, method: str, data: bytes, limit: int, look: Stopped) -> Head:
        """Return the head of a reply with status 200 and a readable encoding; raise for others."""
        head = self._on_wire(lambda: self._asked(method, data, look))
        if head.status != 200:
            content = self._on_wire(lambda: self._content(min(limit, _REASON_BYTES), look))
            if content is None:
                self.close()
            raise self._refused(head, reason_of(content or b""))
        if head.encoding not in ("identity", ""):
            self.close()
            raise BackendError(f"{self._where} answered with unrequested encoding {head.encoding[:40]}")
        return head

    def _asked(self, method: str, data: bytes, look: Stopped) -> Head:
        self._wire, used = self._connections.take(look)
        try:
            return self._sent(self._wire, method, data, look)
        except ConnectionError:
            # The server closed a connection that was idle just as the request left.
            if not used or not self._wire.unprocessed:
                raise
        self.close()
        self._wire, _ = self._connections.take(look, fresh=True)
        return self._sent(self._wire, method, data, look)

    def _sent(self, wire: Wire, method: str, data: bytes, look: Stopped) -> Head:
        kind = "application/json" if data else None
        return wire.ask(method, self._path, kind, f"application/json, {_STREAM}", self._key, data, look)

    def _content(self, limit: int, look: Stopped) -> bytes | None:
        """Return the content with keys redacted, or None if it is longer than `limit`."""
        assert self._wire is not None  # noqa: S101 - its head was read
        parts, size = [], 0
        for part in self._wire.body(look):
            parts.append(part)
            size += len(part)
            if size > limit:
                return None
        return redact_bytes(b"".join(parts))

    def _json(self, head: Head, limit: int, look: Stopped) -> Any:
        content = self._on_wire(lambda: self._content(limit, look))
        if content is None:
            self.close()
            raise BackendError(f"{self._where} sent more than {limit:,} bytes for this request")
        if head.kind != "application/json" and not head.kind.endswith("+json"):
            raise BackendError(
                f"{self._where} sent {head.kind[:80] or 'no content type'}, expected application/json",
                hint="check the address: it should end in /v1",
            )
        return _decode_body(content, "a reply")

    def _streamed(self, limit: int, look: Stopped) -> Iterator[Any]:
        """Yield the events of `text/event-stream`: lines with "data:", up to "[DONE]" or the end."""
        lines = self._lines(limit, look)
        while True:
            line = self._on_wire(lambda: next(lines, None))
            if line is None:
                raise _PassingError("the stream ended before it was done")
            name, _, value = line.partition(b":")
            if name != b"data":
                continue
            if value.strip() == b"[DONE]":
                return  # does not wait for trailing data: see `Wire.ready`
            yield _decode_body(redact_bytes(value), "an event")

    def _lines(self, limit: int, look: Stopped) -> Iterator[bytes]:
        assert self._wire is not None  # noqa: S101 - its head was read
        held, size = bytearray(), 0
        for part in self._wire.body(look):
            size += len(part)
            if size > limit:
                raise BackendError(f"{self._where} sent more than {limit:,} bytes for this request")
            start = len(held)
            held += part
            if held.find(b"\n", start) < 0:
                continue
            *whole, rest = bytes(held).split(b"\n")
            held = bytearray(rest)
            for line in whole:
                look()
                yield line
        if held:
            yield bytes(held)

    def _refused(self, head: Head, text: str) -> Exception:
        if head.status in _PASSING:
            return _PassingError(f"status {head.status}: {text}", wait_of(head.retry_after))
        reason = " ".join(head.reason.split())[:80]
        message = f"{self._where} answered {head.status} {reason}: {text}"
        if head.status in (400, 413, 422) and about_length(text):
            return TooLongError(message)
        hint = "check address and model name"
        if head.status in (401, 403):
            hint = "set the key in KETRAG_OPENAI_API_KEY (or OPENAI_API_KEY)"
        return RefusedError(message, head.status, hint=hint)

    @property
    def _where(self) -> str:
        return f"{self._place.scheme}://{self._place.netloc}{self._path}"


def _encode_body(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _decode_body(content: bytes, what: str) -> Any:
    fault = ""
    try:
        found = json.loads(content)
        return without_keys(found) if b"\\" in content else found
    except (ValueError, RecursionError) as error:
        fault = str(error)[:SHOWN]
    raise _PassingError(f"{what} that is not JSON ({fault})")
