"""Endpoints that do what no endpoint should: a server on loopback that plays a script to who comes.

A script is a list of steps: bytes are sent, `Slowly` sends one byte after the other, a number is a pause,
`HOLD` is silence until the test is over, `RESET` breaks the connection; at its end the connection is closed.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

KEY: Final = "sk-canary-7f3a9b2e51d04c68"
K: Final = KEY.encode()


@dataclass(frozen=True)
class Slowly:
    """Sent a byte at a time."""

    data: bytes
    pause: float = 0.02


HOLD: Final = "hold"
RESET: Final = "reset"
Step = bytes | float | str | Slowly
Script = Sequence[Step]
Play = Callable[["Asked"], Script]


@dataclass(frozen=True)
class Asked:
    """A request."""

    path: str
    body: dict[str, Any]

    @property
    def good(self) -> bytes:
        """The content of a good reply."""
        if self.path.endswith("/models"):
            return json.dumps({"data": [{"id": "mini"}]}).encode()
        if self.path.endswith("/embeddings"):
            rows = [{"index": n, "embedding": vector(text)} for n, text in enumerate(self.body["input"])]
            return json.dumps({"data": rows}).encode()
        return json.dumps({"choices": [{"message": {"content": "Nansen [1]."}}]}).encode()

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))


def vector(text: str) -> list[float]:
    """The sum of its words' vectors: a model in miniature."""
    rows = [random.Random(word) for word in text.split()]
    return [sum(row.uniform(-1, 1) for row in rows) for _ in range(8)]


def reply(content: bytes, status: str = "200 OK", kind: str = "application/json", more: bytes = b"") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n".encode()
    return head + more + b"\r\n" + content


def good(asked: Asked) -> Script:
    return [reply(asked.good)]


class Hostile:
    """Plays `play` to each request whose path it is for (`only` is a part of it), and is good to others.
    `at_once` plays before any request is read.
    """

    def __init__(self, play: Play, only: str = "", *, at_once: bool = False, backlog: int = 64) -> None:
        self._play, self._only, self._at_once = play, only, at_once
        self.over = threading.Event()
        self.requests = 0
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for sock in (self._listener, *self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._at_once:
                self._act(sock, self._play(Asked("", {})))
                return
            file = sock.makefile("rb")
            while (asked := _read(file)) is not None:
                self.requests += 1
                if self._only not in asked.path:
                    self._act(sock, good(asked))
                    continue
                self._act(sock, self._play(asked))
                break
        except (OSError, ValueError):
            pass
        finally:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _act(self, sock: socket.socket, script: Script) -> None:
        for step in script:
            if isinstance(step, Slowly):
                for place in range(len(step.data)):
                    sock.sendall(step.data[place : place + 1])
                    if self.over.wait(step.pause):
                        return
            elif isinstance(step, bytes):
                sock.sendall(step)
            elif step == HOLD:
                self.over.wait()
            elif step == RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
                return
            elif isinstance(step, float):
                self.over.wait(step)


def _read(file: Any) -> Asked | None:
    first = file.readline().split()
    if len(first) < 2:
        return None
    size = 0
    while (line := file.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            size = int(value)
    return Asked(first[1].decode(), json.loads(file.read(size)) if size else {})


# ---------------------------------------------------------------- scripts

ENDLESS: Final = 1 << 14
"""Bytes that are sent one by one: minutes, whoever waits."""
HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SSE: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def delta(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


def _fixed(*steps: Step) -> Play:
    return lambda _: steps


def _error(status: str, text: str = f"no: {KEY}", more: bytes = b"") -> Play:
    return _fixed(reply(json.dumps({"error": {"message": text}}).encode(), status, more=more))


def _content(content: bytes, kind: str = "application/json", more: bytes = b"") -> Play:
    return _fixed(reply(content, kind=kind, more=more))


_STATUS: Final = (
    "201 Created",
    "204 No Content",
    "301 Moved",
    "307 Temporary",
    "400 Bad",
    "401 Unauthorized",
    "402 Pay",
    "403 Forbidden",
    "404 Not Found",
    "408 Timeout",
    "413 Too Large",
    "418 Teapot",
    "422 Bad Entity",
    "429 Too Many",
    "500 Broken",
    "501 Not Made",
    "502 Bad Gateway",
    "503 Busy",
    "529 Overloaded",
    "999 Odd",
)
_ESCAPED: Final = "".join(f"\\u{ord(sign):04x}" for sign in KEY).encode()

SCENARIOS: Final[dict[str, Play]] = {
    **{f"status {status[:3]} with the key": _error(f"{status} {KEY}") for status in _STATUS},
    "key across the cut of a reason": _error("400 Bad", "x" * 290 + KEY),
    "key in control characters": _error("400 Bad", "\x1b".join(KEY)),
    "key escaped": _fixed(reply(b'{"error": {"message": "' + _ESCAPED + b'"}}', "400 Bad")),
    "key as a name": _fixed(reply(b'{"error": {"' + K + b'": 1}}', "500 Broken")),
    "key in a page": _content(b"<html>" + K, f"text/{KEY}"),
    "key in a header": _error("401 No", more=b"WWW-Authenticate: " + K + b"\r\nX: " + K + b"\r\n"),
    "key in broken JSON": _content(b'{"a": "' + K),
    "key in a status line that is none": _fixed(b"HTTP/1.1 " + K + b" what\r\n\r\n"),
    "key in a header line that is none": _fixed(HEAD + K + b"\r\n\r\n"),
    "key as a length": _fixed(HEAD + b"Content-Length: " + K + b"\r\n\r\n"),
    "key as the size of a chunk": _fixed(CHUNKED + K + b"\r\n"),
    "key as an encoding": _content(b"{}", more=b"Content-Encoding: " + K + b"\r\n"),
    "key as a wait": _error("429 Wait", more=b"Retry-After: " + K + b"\r\n"),
    "a wait without end": _error("429 Wait", more=b"Retry-After: inf\r\n"),
    "a wait of an hour": _error("503 Wait", more=b"Retry-After: 3600\r\n"),
    "a wait of a minute": _error("503 Wait", more=b"Retry-After: 60\r\n"),
    "a wait that is no number": _error("503 Wait", more=b"Retry-After: nan\r\n"),
    "closed": _fixed(),
    "reset": _fixed(RESET),
    "silent": _fixed(HOLD),
    "silent after the head": _fixed(HEAD + b"Content-Length: 100\r\n\r\n", HOLD),
    "silent in the status line": _fixed(b"HTTP/1.1 20", HOLD),
    "trickled status line": _fixed(Slowly(b"HTTP/1.1 200 " + b"O" * ENDLESS)),
    "trickled headers": _fixed(b"HTTP/1.1 200 OK\r\n", Slowly(b"X-A: b\r\n" * ENDLESS)),
    "endless headers": _fixed(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 100_000),
    "a header of a megabyte": _fixed(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n"),
    "continue for ever": _fixed(*[b"HTTP/1.1 100 Continue\r\n\r\n", 0.02] * 10_000),
    "no HTTP": _fixed(b"SSH-2.0-OpenSSH_9.6\r\n", HOLD),
    "trickled content": _fixed(HEAD + b"Content-Length: 100000\r\n\r\n", Slowly(b" " * ENDLESS)),
    "trickled to the end of the connection": _fixed(HEAD + b"\r\n", Slowly(b" " * ENDLESS)),
    "trickled sizes of chunks": _fixed(CHUNKED, Slowly(b"0" * ENDLESS)),
    "an endless extension of a chunk": _fixed(CHUNKED + b"1;", Slowly(b"a" * ENDLESS)),
    "a huge chunk": _fixed(CHUNKED + b"7fffffffffffffff\r\n", HOLD),
    "a chunk that is cut": _fixed(CHUNKED + b"ff\r\n{}"),
    "trickled trailers": _fixed(CHUNKED + b"2\r\n{}\r\n0\r\n", Slowly(b"X: b\r\n" * ENDLESS)),
    "a slow server": lambda asked: [400.0, reply(asked.good)],
    "content that is cut": lambda asked: [reply(asked.good)[:-10]],
    "two lengths": _fixed(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
    "a negative length": _fixed(HEAD + b"Content-Length: -1\r\n\r\n{}"),
    "a length beyond all": _fixed(HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}", HOLD),
    "a transfer that nobody knows": _fixed(HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}"),
    "packed, unasked": _content(b"\x1f\x8b\x08\x00" * 9, more=b"Content-Encoding: gzip\r\n"),
    "an endless reply": _fixed(HEAD + b"\r\n", *[b" " * 1_000_000] * 64),
    "nothing": _content(b""),
    "null": _content(b"null"),
    "nested": _content(b"[" * 100_000),
    "a number of a million digits": _content(b'{"usage": {"prompt_tokens": ' + b"9" * 1_000_000 + b"}}"),
    "no UTF-8": _content(b'{"a": "\xff\xfe\x80"}'),
    "odd shapes": _content(json.dumps({"data": {KEY: 1}, "choices": {"0": KEY}, "usage": [KEY]}).encode()),
    "vectors of texts": _content(json.dumps({"data": [{"index": 0, "embedding": [KEY]}]}).encode()),
    "vectors numbered by the key": _content(json.dumps({"data": [{"index": KEY}] * 9}).encode()),
    "an error with status 200": _content(json.dumps({"error": {"message": KEY}}).encode()),
    "an answer with the key": _content(json.dumps({"choices": [{"message": {"content": KEY}}]}).encode()),
    "comments for ever": _fixed(SSE, *[b": alive\n\n", 0.02] * 10_000),
    "one endless comment": _fixed(SSE + b": ", Slowly(b"a" * ENDLESS)),
    "empty events for ever": _fixed(SSE, *[b'data: {"choices": []}\n\n', 0.02] * 10_000),
    "words for ever": _fixed(SSE, *[delta("word "), 0.02] * 10_000),
    "an endless line": _fixed(SSE + b"data: ", *[b"a" * 1_000_000] * 64),
    "an event that is no JSON": _fixed(SSE + b"data: {" + K + b"\n\n"),
    "an event that tells of an error": _fixed(
        SSE + b"data: " + json.dumps({"error": {"message": KEY}}).encode() + b"\n\n"
    ),
    "a stream with the key": _fixed(SSE + delta(f"it is {KEY} [1]") + b"data: [DONE]\n\n"),
    "a stream with the key in letters": _fixed(
        SSE + b"".join(map(delta, f"it is {KEY} [1]")) + b"data: [DONE]\n\n"
    ),
    "a stream with the key between controls": _fixed(
        SSE + b"".join(delta(f"{sign}\x1b") for sign in KEY) + b"data: [DONE]\n\n"
    ),
    "a stream that stays open": _fixed(SSE + delta("Nansen [1].") + b"data: [DONE]\n\n", HOLD),
    "a stream that stops": _fixed(SSE + delta("Nansen"), HOLD),
    "a stream that is cut": _fixed(SSE + delta("Nansen")),
    "a stream that is reset": _fixed(SSE + delta("Nansen"), 0.05, RESET),
}
"""What each request that a test is about is answered with."""


def generated(seed: int) -> Play:
    """A script made by chance of parts of good and bad replies."""
    draw = random.Random(seed)

    def play(asked: Asked) -> Script:
        status = draw.choice(["200 OK"] * 6 + [*_STATUS])
        reason = draw.choice(["", f" {KEY}", " " + "r" * 500])
        kind = draw.choice(["application/json"] * 4 + ["text/event-stream"] * 3 + ["text/html", f"a/{KEY}"])
        bodies = [
            asked.good,
            b'{"error": "' + K + b'"}',
            b"".join(delta(KEY[at : at + 3]) for at in range(0, len(KEY), 3)) + b"data: [DONE]\n\n",
            delta("Nansen [1].") + b": c\n\ndata: [DONE]\n\n",
            K * draw.randrange(1, 50),
            bytes(draw.randrange(256) for _ in range(draw.randrange(200))),
            b"[" * 5000,
        ]
        body = draw.choice(bodies)
        head = [f"HTTP/1.{draw.choice('01')} {status}{reason}".encode(), f"Content-Type: {kind}".encode()]
        more = [b"X: " + K, b"Retry-After: 0.2", b"Connection: close", K, b"A" * 9000]
        head += [draw.choice(more) for _ in range(draw.randrange(4))]
        how = draw.choice(("length", "wrong length", "chunks", "end"))
        if how == "chunks":
            head.append(b"Transfer-Encoding: chunked")
            size = draw.randrange(1, 64)
            parts = [body[at : at + size] for at in range(0, len(body), size)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        elif how != "end":
            head.append(
                b"Content-Length: %d" % (len(body) + draw.choice((0, 7, -1) if how[0] == "w" else (0,)))
            )
        data = b"\r\n".join(head) + b"\r\n\r\n" + body
        steps: list[Step] = []
        while data:  # sent in pieces, some of them slowly, some cut, some followed by silence
            piece = draw.choice((len(data), draw.randrange(1, 400)))
            part, data = data[:piece], data[piece:]
            steps.append(Slowly(part) if draw.random() < 0.2 else part)
            end = draw.random()
            if end < 0.06:
                return [*steps, HOLD]
            if end < 0.1:
                return [*steps, RESET]
            if end < 0.14:
                return steps
        return steps if draw.random() < 0.7 else [*steps, HOLD]

    return play
