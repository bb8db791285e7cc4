"""Requests that somebody made to get past the front, or to mean two things.

Each is sent to a service whose front answers plain requests and to one whose front passes all of them to the
application; the replies must be equal.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION

pytestmark = [
    pytest.mark.usefixtures("loopback"),
]

LINE = b"POST /v1/retrieve HTTP/1.1"
BODY = json.dumps({"question": QUESTION, "mode": "bm25"}).encode()
LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
VARYING = re.compile(rb'"timings_ms":\{[^}]*\}|(?i:\r\ndate: [^\r]*)|(?<=content-length: )\d+')
NAMES = re.compile(rb"HTTP/1.1 (\d{3})")


@pytest.fixture(scope="module")
def services(folder: Path) -> Iterator[tuple[Any, Any]]:
    """A service whose front answers, and one whose application does."""
    with contextlib.ExitStack() as stack:
        seconds: dict[str, Any] = {"read_seconds": 1.0, "idle_seconds": 3.0}
        options: dict[str, Any] = {"cache": 0, **seconds, "settings": {"allow": "letters=4"}}
        yield tuple(stack.enter_context(running(folder, front=front, **options)) for front in (True, False))  # type: ignore[misc]


def replies(port: int, data: bytes) -> bytes:
    """All that is replied to some bytes and a last request behind them."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        got = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(data + LAST)
            while some := connection.recv(1 << 16):
                got += some
    return VARYING.sub(b"", got)


def compare(services: tuple[Any, Any], cases: dict[str, bytes], *, refused: bool = False) -> None:
    different, answered = {}, {}
    with ThreadPoolExecutor(8) as pool:  # many replies come only when the time to read a request is over
        got = [list(pool.map(replies, [service.port] * len(cases), cases.values())) for service in services]
    for name, fast, plain in zip(cases, *got, strict=True):
        # The order of the headers is the server's.
        if NAMES.findall(fast) != NAMES.findall(plain) or bodies(fast) != bodies(plain):
            different[name] = (fast[:900], plain[:900])
        if NAMES.findall(fast)[:1] == [b"200"]:
            answered[name] = fast[:300]
    assert different == {}
    assert not refused or answered == {}


def bodies(data: bytes) -> list[bytes]:
    return [part.partition(b"\r\n\r\n")[2] for part in data.split(b"HTTP/1.1 ")]


def request(*lines: bytes, body: bytes = BODY, length: bytes | None = None, end: bytes = b"\r\n") -> bytes:
    """A request with these header lines and a Content-Length."""
    size = b"Content-Length: %d" % len(body) if length is None else length
    return end.join([LINE, *lines, *([size] if size else []), b"", b""]) + body


HOSTS = (
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "evil.example#localhost",
    "evil.example/localhost",
    "evil.example?localhost",
    "evil.example@localhost",
    "localhost@evil.example",
    "localhost/evil.example",
    "localhost#evil.example",
    "localhost?evil.example",
    "localhost\\evil.example",
    "localhost:80@evil.example",
    "localhost,evil.example",
    "localhost evil.example",
    "[localhost]",
    "[127.0.0.1]",
    "[::1",
    "::1]",
    "[::1]x",
    "[::1]:x",
    "localhost:80:80",
    "localhost:-1",
    "localhost:0x50",
    "localhost.",
    "",
    " ",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0",
    "0.0.0.0",
    "[::]",
    "localhost%00",
    "%6cocalhost",
    "xn--lcalhost-54a",
)


def test_hosts_that_are_not_this_one(services: tuple[Any, Any]) -> None:
    """Some a browser cannot send, but a proxy might read another name in them."""
    compare(services, {host: request(b"Host: " + host.encode()) for host in HOSTS}, refused=True)
    good = ("localhost", "LOCALHOST", "localhost:8765", "127.0.0.1", "[::1]", "[::1]:80", "localhost:")
    compare(services, {host: request(b"Host: " + host.encode()) for host in good})
    assert all(
        replies(services[0].port, request(b"Host: " + host.encode())).startswith(b"HTTP/1.1 200")
        for host in good
    )


AMBIGUOUS: dict[str, tuple[bytes, ...]] = {
    "two hosts": (b"Host: localhost", b"Host: localhost"),
    "two hosts, one foreign": (b"Host: localhost", b"hOST: evil.example"),
    "a foreign host first": (b"Host: evil.example", b"Host: localhost"),
    "two origins": (b"Host: localhost", b"Origin: http://localhost", b"Origin: https://evil.example"),
    "two lengths that differ": (b"Host: localhost", b"Content-Length: 5"),
    "two encodings": (b"Host: localhost", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    "an unknown encoding": (b"Host: localhost", b"Transfer-Encoding: xchunked"),
    "chunks with a space": (b"Host: localhost", b"Transfer-Encoding : chunked"),
}
"""The connection ends with the reply, so that no byte after the head is taken for a request."""
HEADERS: dict[str, tuple[bytes, ...]] = {
    "no host": (),
    "a foreign origin": (b"Host: localhost", b"Origin: http://evil.example"),
    "an origin of null": (b"Host: localhost", b"Origin: null"),
    "a length and chunks": (b"Host: localhost", b"Transfer-Encoding: chunked"),
    "chunks with a tab": (b"Host: localhost", b"Transfer-Encoding:\tchunked"),
    "chunks with a vertical tab": (b"Host: localhost", b"Transfer-Encoding: \x0bchunked"),
    "folded": (b"Host: localhost", b"X: a", b" Transfer-Encoding: chunked"),
    "a bare line feed": (b"Host: localhost", b"X: a\nTransfer-Encoding: chunked"),
    "a bare carriage return": (b"Host: localhost", b"X: a\rTransfer-Encoding: chunked"),
    "NUL": (b"Host: localhost", b"X: a\x00b"),
    "no colon": (b"Host: localhost", b"X"),
    "no name": (b"Host: localhost", b": a"),
    "a name with a space": (b"Host: localhost", b"X Y: a"),
    "a name of bytes": (b"Host: localhost", b"\xff: a"),
    "an upgrade": (b"Host: localhost", b"Connection: upgrade", b"Upgrade: h2c"),
    "a foreign type": (b"Host: localhost", b"Content-Type: text/plain"),
    "two types": (b"Host: localhost", b"Content-Type: application/json", b"Content-Type: text/plain"),
    "a form": (b"Host: localhost", b"Content-Type: multipart/form-data; boundary=x"),
}
LENGTHS = (b"", b"Content-Length: ", b"Content-Length: -1", b"Content-Length: 0x10", b"Content-Length: 1e1")
LENGTHS += (
    b"Content-Length: +%d" % len(BODY),
    b"Content-Length: %d, %d" % (len(BODY), len(BODY)),
    b"Content-Length: 1_0",
)
LENGTHS += (
    b"Content-Length: 99999999999999999999",
    b"Content-Length: \xb2",
    b"Content-Length: %d;" % len(BODY),
)


def test_headers_that_two_programs_might_read_differently(services: tuple[Any, Any]) -> None:
    compare(services, {name: request(*lines) for name, lines in HEADERS.items()}, refused=True)
    compare(services, {name: request(*lines) for name, lines in AMBIGUOUS.items()}, refused=True)
    for name, lines in AMBIGUOUS.items():
        assert NAMES.findall(replies(services[0].port, request(*lines))) == [b"400"], name
    lengths = {str(line): request(b"Host: localhost", length=line) for line in LENGTHS}
    compare(services, lengths, refused=True)
    compare(services, {"line feeds alone": request(b"Host: localhost", end=b"\n")})
    fine = {
        "two lengths": request(b"Host: localhost", b"Content-Length: %d" % len(BODY)),
        "many headers": request(b"Host: localhost", *(b"X-%d: a" % n for n in range(60))),
        "zeros before the length": request(b"Host: localhost", length=b"Content-Length: 00%d" % len(BODY)),
        "a header of 8 kB": request(b"Host: localhost", b"X: " + b"a" * 8000),
    }
    compare(services, fine)


FIELDS: dict[tuple[int, str | None], str] = {
    (200, None): r"""
        "mode":"nothing","mode":"bm25" "filter":"{\"letters\":3}" "filter":"{\"$and\":[{}]}"
        "budget":100.0 "budget":1e2 "budget":-0 "top":0 "explain":null""",
    (400, "bad_json"): '"budget":1e400 "budget":NaN',
    (400, "config"): r'"mode":"skeleton/../../x" "mode":"" "mode":"nothing" "mode":"bm25\u0000"',
    (400, "input"): r"""
        "filter":{"letters":{"$near":1990}} "filter":3 "filter":false "filter":"" "filter":"letters>"
        "filter":"{" "filter":"{letters=3" "filter":"{\"letters\":}" "filter":"{\"letters\":NaN}"
        "filter":"nothing=1" "filter":"{\"letters\":{\"$near\":3}}" """,
    (404, "unknown_index"): '"index":"other" "index":"../ketrag"',
    (422, "bad_request"): """
        "questions":["b"] "llm":"openai:x@http://10.0.0.1" "rights":1 "rights":null "allow":"letters=3"
        "allow":null "budget":-1 "budget":1.5 "budget":true "budget":1e30 "budget":18446744073709551615
        "budget":18446744073709551616 "budget":99999999999999999999999 "top":"3" "top":10001
        "deadline":0 "deadline":-0.0 "deadline":1e-400 "deadline":1e9 "deadline":true
        "explain":0 "explain":"yes"
        """,
}
"""Fields that follow a question, and the status and code of the reply."""
BODIES: dict[tuple[int, str | None], list[bytes]] = {
    (200, None): [
        b'{"question":"Fram","question":"Maud"}',
        b'{"question":"Fram","filter":"letters=3 or letters exists"}',
        b'{"question":"Fram \\ud83d\\ude00"}',
        b'{"question":"Fram \\u0000 polar"}',
        b' \n{"question":"Fram"}\t ',
        b'{"question":"\\u200b"}',
    ],
    (400, "bad_json"): [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"question":"Fram \\ud800"}',
        b'{"question":"Fram \x01"}',
        b'{"question":"Fram \xff"}',
        b'{"question":"Fram \xed\xa0\x80"}',
        b'{"question":"Fram \xc0\xaf"}',
        b'\xef\xbb\xbf{"question":"Fram"}',
        '{"question":"Fram"}'.encode("utf-16"),
        b'{"question":"Fram",}',
        b'{"question":"Fram"/**/}',
        b'{"question":"Fram"}{}',
        b'{"question":"Fram"} x',
        b'{"question":"Fram"}\x00',
        b'{"question":"Fram","filter":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ],
    (400, "empty_query"): [
        b'{"question":"  "}',
        b'{"questions":["a","\\n"]}',
        b'{"question":" \\u2003\\u001f"}',
    ],
    (400, "input"): [
        b'{"question":"Fram","filter":" "}',
        b'{"question":"Fram","filter":" {"}',
        b'{"question":"Fram","filter":"letters<4 and"}',
    ],
    (413, "too_large"): [b'{"question":"' + b"a" * 2_000_000 + b'"}'],
    (422, "bad_request"): [
        b"[]",
        b"{}",
        b'"Fram"',
        b'[{"question":"Fram"}]',
        b'{"question":1}',
        b'{"question":""}',
        b'{"questions":[]}',
        b'{"questions":["a",1]}',
        b'{"question":"' + b"a" * 30_000 + b'"}',
    ],
}


def test_bodies_that_two_parsers_might_read_differently(services: tuple[Any, Any]) -> None:
    cases = {key: [*bodies] for key, bodies in BODIES.items()}
    for key, fields in FIELDS.items():
        cases.setdefault(key, []).extend(b'{"question":"Fram",%s}' % one.encode() for one in fields.split())
    for (status, code), bodies in cases.items():
        compare(services, {str(body[:200]): request(b"Host: localhost", body=body) for body in bodies})
        for body in bodies:
            with services[0].client() as client:
                reply = client.post("/v1/retrieve", content=body)
            assert (reply.status_code, reply.json().get("code")) == (status, code), body[:200]


def test_what_may_not_be_seen_is_on_neither_path(services: tuple[Any, Any]) -> None:
    """`odd.md` is not allowed."""
    for service in services:
        with service.client() as client:
            for more in (
                {},
                {"filter": "letters exists"},
                {"filter": "letters=3 or not letters=3"},
                {"mode": "walk"},
            ):
                body = {"question": "An odd text of Colin Archer", "budget": 4000, **more}
                reply = client.post("/v1/retrieve", json=body)
                assert reply.status_code == 200
                assert "odd" not in {p["document"].partition(".")[0] for p in reply.json()["passages"]}
