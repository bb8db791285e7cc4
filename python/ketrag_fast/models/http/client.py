"""JSON requests to an endpoint with typed errors; temporary faults are retried.

Redirects are not followed and proxies are not used, so a key is only sent to the named host. Keys are
redacted from replies before anything reads them, and no error is chained to a network exception, whose
message and frames may contain the request.
"""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, TypeVar

import httpcore

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.http.connections import (
    FAULTS,
    SLICE,
    Connections,
    RequestClock,
    Stopped,
    reason_phrase,
)
from ketrag_fast.models.http.endpoints import RetryPolicy
from ketrag_fast.secrets import Key, redact_all, redact_bytes, without_keys

_PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT: Final = 300.0
_REASON_BYTES: Final = 1 << 16
_STREAM: Final = "text/event-stream"
_END_SECONDS: Final = 0.1
"""How long the end of a stream is awaited after `[DONE]`; without it, the connection cannot be used again."""
_LOOK_SECONDS: Final = 0.1
"""Interval of checks for cancellation while waiting for replies."""
I = TypeVar("I")  # noqa: E741
T = TypeVar("T")


class _PassingError(Exception):
    """A fault that may be temporary. `nobody`: the connection was refused."""

    def __init__(self, message: str, wait: float | None = None, *, nobody: bool = False) -> None:
        super().__init__(redact_all(message))
        self.wait = wait
        self.nobody = nobody


class Client:
    """Sends requests to one path, one at a time; each thread has its own client and shares `connections`."""

    def __init__(self, connections: Connections, path: str, key: Key | None, retry: RetryPolicy) -> None:
        self._connections = connections
        self._where = f"{connections.place.scheme}://{connections.place.netloc}{path}"
        self._path = path
        self._key = key
        self._retry = retry
        self._began: float | None = None
        self._before = 0.0

    @property
    def spent(self) -> float:
        """The duration of all attempts, without the pauses between them."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    def post(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Any:
        """Return the JSON of the reply, of up to `limit` bytes; `stopped` raises to cancel."""
        data = encode_body(body)
        return self._patiently(lambda clock: self._whole(self._reply("POST", data, clock), limit), stopped)

    def get(self, limit: int, stopped: Stopped) -> Any:
        """Return the JSON at the address."""
        return self._patiently(lambda clock: self._whole(self._reply("GET", b"", clock), limit), stopped)

    def events(self, body: Mapping[str, Any], limit: int, stopped: Stopped) -> Iterator[Any]:
        """Yield the JSON of each event of a streamed reply; a reply that is not streamed is one event.

        Retried until the first event; later faults are final.
        """
        data = encode_body(body)

        def once(clock: RequestClock) -> Iterator[Any]:
            reply = self._reply("POST", data, clock)
            if _header(reply, b"content-type") == _STREAM:
                return self._streamed(reply, limit, clock)
            return iter([self._whole(reply, limit)])

        broken = ""
        try:
            yield from self._patiently(once, stopped)
        except _PassingError as fault:
            broken = str(fault)
        if broken:
            raise BackendError(f"{self._where} broke off: {broken}", hint="ask again")

    # ------------------------------------------------------------ attempts

    def _patiently(self, once: Callable[[RequestClock], T], stopped: Stopped) -> T:
        retry = self._retry
        for attempt in range(1, retry.attempts + 1):
            stopped()
            self._began = time.monotonic()
            try:
                return once(RequestClock(retry.timeout, stopped))
            except _PassingError as error:
                fault, wait, nobody = str(error), error.wait, error.nobody
            finally:
                self._before, self._began = self.spent, None
            stopped()
            if attempt == retry.attempts:
                times = "once" if attempt == 1 else f"{attempt} times, last"
                text = f"{self._where} failed {times}: {fault}"
                if nobody:
                    hint = "check the address, and whether the server runs there; finished work is kept"
                    raise UnreachableError(text, hint=hint)
                raise BackendError(text, hint="see the server's log; finished work is kept")
            self._wait(attempt, wait, stopped)
        raise ConfigError("an endpoint needs at least one attempt")

    def _wait(self, attempt: int, asked: float | None, stopped: Stopped) -> None:
        jitter = 0.5 + random.random()  # noqa: S311 - spreads retries, protects nothing
        pause = min(self._retry.pause * 2 ** (attempt - 1), 30.0) * jitter
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
            time.sleep(min(left, SLICE))

    # ------------------------------------------------------------ one attempt

    def _reply(self, method: str, data: bytes, clock: RequestClock) -> httpcore.Response:
        """Return a reply with status 200 and a readable encoding, of which only the head was read."""
        reply = _on_wire(lambda: self._connections.ask(method, self._path, self._key, data, clock))
        try:
            if reply.status != 200:
                content = _on_wire(lambda: _content(reply, _REASON_BYTES)) or b""
                raise self._refused(reply, reason_of(content), code_of(content))
            encoding = _header(reply, b"content-encoding")
            if encoding not in ("identity", ""):
                raise BackendError(f"{self._where} answered with unrequested encoding {encoding[:40]}")
        except BaseException:
            reply.close()
            raise
        return reply

    def _whole(self, reply: httpcore.Response, limit: int) -> Any:
        try:
            content = _on_wire(lambda: _content(reply, limit))
        finally:
            reply.close()
        if content is None:
            raise BackendError(f"{self._where} sent more than {limit:,} bytes for this request")
        kind = _header(reply, b"content-type")
        if kind != "application/json" and not kind.endswith("+json"):
            raise BackendError(
                f"{self._where} sent {kind[:80] or 'no content type'}, expected application/json",
                hint="check the address: it should end in /v1",
            )
        return _decode_body(content, "a reply")

    def _streamed(self, reply: httpcore.Response, limit: int, clock: RequestClock) -> Iterator[Any]:
        """Yield the events of `text/event-stream`: lines with "data:", up to "[DONE]" or the end."""
        pieces = reply.iter_stream()
        lines = self._lines(pieces, limit, clock)
        try:
            while (line := _on_wire(lambda: next(lines, None))) is not None:
                name, _, value = line.partition(b":")
                if name != b"data":
                    continue
                if value.strip() == b"[DONE]":
                    clock.restart(_END_SECONDS, lambda: None)
                    with suppress(*FAULTS):
                        deque(pieces, maxlen=0)
                    return
                yield _decode_body(value, "an event")
            raise _PassingError("the stream ended before it was done")
        finally:
            reply.close()

    def _lines(self, pieces: Iterator[bytes], limit: int, clock: RequestClock) -> Iterator[bytes]:
        """Yield lines with keys redacted."""
        held, size = bytearray(), 0
        for part in pieces:
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
                clock.check()
                yield redact_bytes(line)
        if held:
            yield redact_bytes(bytes(held))

    def _refused(self, reply: httpcore.Response, text: str, code: str | None) -> Exception:
        if reply.status in _PASSING:
            return _PassingError(f"status {reply.status}: {text}", wait_of(_header(reply, b"retry-after")))
        message = f"{self._where} answered {reply.status} {reason_phrase(reply)}: {text}"
        if reply.status in (400, 413, 422) and about_length(text):
            return TooLongError(message)
        hint = "check address and model name"
        if reply.status in (401, 403):
            hint = "set the key in KETRAG_OPENAI_API_KEY (or OPENAI_API_KEY)"
        return RefusedError(message, reply.status, hint=hint, code=code)


def in_threads(
    work: Callable[[I], T], items: Iterable[I], threads: int, ahead: int, alive: Callable[[], None]
) -> Iterator[tuple[I, Future[T]]]:
    """Run `work` on items in threads; yield each item with its result as it finishes, in any order.

    At most `ahead` items are taken before they are finished. `alive` is called several times a second and may
    raise; then the rest ends without being waited for, as it does when the caller stops. Threads end with the
    call, so `fork` is safe.
    """
    waiting = iter(items)
    running: dict[Future[T], I] = {}
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ketrag-requests")
    try:
        while True:
            for item in islice(waiting, ahead - len(running)):
                running[pool.submit(work, item)] = item
            if not running:
                return
            for done in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                yield running.pop(done), done
            alive()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _on_wire(work: Callable[[], T]) -> T:
    """Run `work` on a connection; raise its faults without frames and causes."""
    try:
        return work()
    except FAULTS as error:
        fault = f"{type(error).__name__}: {redact_all(str(error))}"[:SHOWN]
        ended: BaseException = _PassingError(fault, nobody=isinstance(error, ConnectionRefusedError))
    except BaseException as error:  # noqa: BLE001 - raised again, from here
        ended = error
    raise ended.with_traceback(None)


def _content(reply: httpcore.Response, limit: int) -> bytes | None:
    """Return the content with keys redacted, or None if it is longer than `limit`."""
    parts, size = [], 0
    for part in reply.iter_stream():
        parts.append(part)
        size += len(part)
        if size > limit:
            return None
    return redact_bytes(b"".join(parts))


def _header(reply: httpcore.Response, name: bytes) -> str:
    """Return a header without parameters, in lower case and with keys redacted."""
    values = [value for other, value in reply.headers if other.lower() == name]
    return redact_all(values[-1].decode("latin-1").split(";")[0].strip().lower()) if values else ""


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return the body of a request as JSON."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _decode_body(content: bytes, what: str) -> Any:
    fault = ""
    try:
        found = json.loads(content)
        return without_keys(found) if b"\\" in content else found
    except (ValueError, RecursionError) as error:
        fault = str(error)[:SHOWN]
    raise _PassingError(f"{what} that is not JSON ({fault})")


SHOWN: Final = 300
"""Maximum length of quoted remote text in an error, in characters."""
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


class TooLongError(BackendError):
    """The endpoint reports that a text exceeds the maximum input of its model."""


class RefusedError(BackendError):
    """The endpoint answered with a permanent error `status`. `given` is the code in its reply, if any."""

    def __init__(
        self, message: str, status: int, *, hint: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.given = code


class UnreachableError(BackendError):
    """The connection to the address was refused."""


def reason_of(content: bytes) -> str:
    """Return the reason in an error response; keys are redacted before it is truncated."""
    text = content.decode("utf-8", "replace")
    try:
        found = without_keys(json.loads(text))
        error = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, RecursionError):
        pass
    return redact_all(" ".join(text.split()))[:SHOWN] or "no reason given"


def code_of(content: bytes) -> str | None:
    """Return the code in an error response of `ketrag serve`; None in other responses."""
    try:
        code = json.loads(content).get("code")
    except (ValueError, RecursionError, AttributeError):
        return None
    return code if isinstance(code, str) else None


def about_length(text: str) -> bool:
    """Return whether a reason is about the length of a text."""
    plain = text.lower()
    if "not support" in plain or "unsupported" in plain:  # about a parameter such as "max_tokens"
        return False
    return any(word in plain for word in _ABOUT_LENGTH)


def wait_of(value: str) -> float | None:
    """Return the seconds of a Retry-After header, or None if it is missing or invalid."""
    if not value:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
