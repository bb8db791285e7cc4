"""What strangers send: each is refused with a code, and the service goes on."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.apps.server.options import parse_indexes
from ketrag_fast.apps.server.replies import without_paths
from ketrag_fast.apps.server.running import token_of
from ketrag_fast.errors import ConfigError
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("loopback")


def test_other_types_methods_and_paths(client: Any, folder: Path) -> None:
    reply = client.post("/v1/retrieve", content=b"question=a", headers={"Content-Type": "text/plain"})
    assert (reply.status_code, reply.json()["code"]) == (415, "not_json")
    reply = client.get("/v1/retrieve")
    assert (reply.status_code, reply.json()["code"], reply.headers["allow"]) == (
        405,
        "method_not_allowed",
        "POST",
    )
    for path in (
        "/v2",
        "/../../etc/passwd",
        "/v1/..%2f..%2fetc/passwd",
        "/page.js/../../x",
        "//etc/passwd",
        "/v1/retrieve/",
    ):
        reply = client.get(path)
        assert reply.status_code in (404, 405), path
        assert "root:" not in reply.text
    for query in ("index=%00", "index=" + "a" * 5000, "first=-1", "first=1e9", "count=5000", "count=٣"):
        assert client.get(f"/v1/documents?{query}").status_code in (404, 422), query
    reply = client.get("/v1/graph/" + "x" * 2000)
    assert reply.status_code == 422
    assert str(folder) not in reply.text


def test_no_error_shows_a_path(client: Any, folder: Path) -> None:
    reply = client.post("/v1/retrieve", json={"question": "a", "mode": "knn"})
    assert reply.status_code in (200, 422)
    reply = client.post("/v1/retrieve", json={"question": "a", "mode": "cg-rag"})
    assert reply.json()["code"] == "mode_unavailable"
    for mode in ("noderag", "cg-rag", "g2cons"):
        text = client.post("/v1/retrieve", json={"question": "a", "mode": mode}).text
        assert str(folder) not in text
        assert str(folder.parent) not in text
    said = without_paths(f"{folder}/x and /home/me/a.txt; C:\\me\\b, and/or 1/2", (("ketrag", str(folder)),))
    assert said == "ketrag/x and …; …, and/or 1/2"


def test_a_defect_says_nothing_of_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(folder) as service, service.client() as client:

        def broken() -> None:
            raise RuntimeError("secret at /srv/secret.py")

        monkeypatch.setattr(service.service.indexes.find(None).index, "stats", broken)
        reply = client.get("/v1/stats")
        assert (reply.status_code, reply.json()["code"]) == (500, "internal")
        assert "secret" not in reply.text
        assert "Traceback" not in reply.text
        assert client.get("/health").status_code == 200


TOKEN = "0123456789abcdef0123456789abcdef"


def test_a_token(folder: Path) -> None:
    with running(folder, token=TOKEN) as service, service.client() as client:
        body = {"question": QUESTION}
        for headers in (
            {},
            {"Authorization": "Bearer"},
            {"Authorization": f"Bearer {TOKEN[:-1]}"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer " + "x" * 5000},
        ):
            reply = client.post("/v1/retrieve", json=body, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")
            assert reply.headers["www-authenticate"] == "Bearer"
        good = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/v1/retrieve", json=body, headers=good).status_code == 200
        twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer x")]
        for path in ("/v1/retrieve", "/v1/search"):
            assert client.post(path, json=body, headers=twice).status_code == 400
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers=good).status_code == 200
        assert client.get("/health").status_code == 200
        assert client.get("/v1/chat/completions").status_code == 401


def test_a_token_is_required_beyond_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KETRAG_TOKEN", raising=False)
    assert token_of(None, "127.0.0.1") is None
    with pytest.raises(ConfigError, match="token"):
        token_of(None, "0.0.0.0")
    with pytest.raises(ConfigError, match="token"):
        token_of(None, "example.org")
    file = tmp_path / "token"
    file.touch(0o600)  # one that others can read is refused
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="16 to"):
        token_of(str(file), "0.0.0.0")
    file.write_text(f"{TOKEN}\n")
    assert token_of(str(file), "0.0.0.0") == TOKEN
    with pytest.raises(ConfigError, match="cannot be read"):
        token_of(str(tmp_path / "none"), "127.0.0.1")
    monkeypatch.setenv("KETRAG_TOKEN", TOKEN)
    assert token_of(None, "0.0.0.0") == TOKEN


def test_names_of_indexes() -> None:
    assert list(parse_indexes(["a=x", "b=y=z"])) == ["a", "b"]
    assert list(parse_indexes(["./x/y"])) == ["ketrag"]
    assert parse_indexes(["a/b=c"])["ketrag"].endswith("a/b=c")
    for wrong in (["x", "y"], ["a=x", "a=y"], ["=x"], [f"{'n' * 65}=x"], ["a="]):
        with pytest.raises(ConfigError):
            parse_indexes(wrong)


def test_hosts_and_origins(folder: Path) -> None:
    page = "https://good.example"
    with running(folder, hosts=("ketrag.example",), origins=(page,)) as service, service.client() as client:
        body = {"question": QUESTION}
        for host in ("evil.example", "127.0.0.1.evil.example", "", "a b", "[::1"):
            reply = client.post("/v1/retrieve", json=body, headers={"Host": host})
            assert (reply.status_code, reply.json()["code"]) == (421, "unknown_host"), host
        for host in ("localhost:9", "127.0.0.1", "[::1]:8765", "ketrag.example", "KETRAG.example:80"):
            assert client.post("/v1/retrieve", json=body, headers={"Host": host}).status_code == 200, host
        for origin in ("https://evil.example", "null", "http://[", "https://good.example.evil.org"):
            reply = client.post("/v1/retrieve", json=body, headers={"Origin": origin})
            assert (reply.status_code, reply.json()["code"]) == (403, "foreign_origin")
            assert "access-control-allow-origin" not in reply.headers
        own = client.post("/v1/retrieve", json=body, headers={"Origin": service.url})
        assert (own.status_code, "access-control-allow-origin" in own.headers) == (200, False)
        reply = client.post("/v1/retrieve", json=body, headers={"Origin": page})
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, page)
        asked = {"Origin": page, "Access-Control-Request-Method": "POST"}
        assert client.options("/v1/retrieve", headers=asked).status_code == 204


def raw(port: int, *parts: bytes, pause: float = 0.0, wait: float = 10.0) -> bytes:
    """What comes back for some bytes until the connection ends."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
        try:
            while data := connection.recv(65_536):
                got += data
        except (TimeoutError, ConnectionError):
            pass
    return got


def until_closed(port: int, *parts: bytes) -> bytes:
    """Return the reply to some bytes; fails if the service does not end the connection."""
    got = b""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
        contextlib.suppress(ConnectionError),
    ):
        for part in parts:
            connection.sendall(part)
        while data := connection.recv(65_536):
            got += data
    return got


def one_reply(line: socket.socket) -> bytes:
    """Return the head of the next reply after reading its body, which may come in a packet of its own."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += line.recv(65_536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    assert length is not None
    while len(body) < int(length[1]):
        body += line.recv(65_536)
    return head


def test_a_body_after_its_reply_keeps_the_connection(folder: Path) -> None:
    """A refusal is written before the body is read: the connection goes on once the body has come."""
    kind = b"Content-Type: application/json\r\nContent-Length: 2"
    request = b"POST /v1/retrieve HTTP/1.1\r\nHost: %s\r\n" + kind + b"\r\n\r\n"
    with (
        running(folder) as service,
        socket.create_connection(("127.0.0.1", service.port), timeout=30) as line,
    ):
        for host, status in ((b"evil.example", b" 421 "), (b"localhost", b" 422 ")):
            line.sendall(request % host)
            if status == b" 421 ":
                assert status in one_reply(line)
                line.sendall(b"{}")
                time.sleep(1.5)  # longer than an incomplete body is waited for
            else:
                line.sendall(b"{}")
                assert status in one_reply(line)


def trickle(port: int, head: bytes, byte: bytes) -> bytes:
    """Return the reply to bytes that never pause for long; fails if the service goes on reading them."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=0.05) as connection:
        connection.sendall(head)
        for _ in range(1000):
            try:
                connection.sendall(byte)
                data = connection.recv(65_536)
            except TimeoutError:
                continue
            except ConnectionError:
                return got
            if not data:
                return got
            got += data
    pytest.fail("the service read a thousand bytes, one by one")


HEAD = b"POST /v1/retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_heads_that_are_none(served: Any, client: Any) -> None:
    for head in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/retrieve HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/retrieve HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\0c\r\n\r\n",
    ):
        got = raw(served.port, head, wait=3)
        assert got == b"" or got.startswith((b"HTTP/1.1 400", b"HTTP/1.1 421")), got
    big = raw(
        served.port, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", wait=3
    )
    assert big == b"" or big.startswith(b"HTTP/1.1 431")
    many = b"".join(b"X-%d: a\r\n" % n for n in range(500))
    got = raw(served.port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n", wait=3)
    assert got == b"" or got.startswith(b"HTTP/1.1 431")
    assert client.get("/health").status_code == 200


def test_no_header_can_be_smuggled_in(served: Any) -> None:
    got = raw(
        served.port,
        b"GET /v1/graph/a%0d%0aSet-Cookie:%20x=1?index=%0d%0aX-Evil:1 HTTP/1.1\r\nHost: localhost\r\n"
        b"Origin: http://localhost\r\nConnection: close\r\n\r\n",
    )
    head = got.split(b"\r\n\r\n", 1)[0].lower()
    assert head.startswith(b"http/1.1 404")
    assert b"set-cookie" not in head
    assert b"x-evil" not in head


def test_a_slow_head_and_a_slow_body_are_cut(folder: Path) -> None:
    with running(folder, read_seconds=0.5) as service, service.client() as client:
        assert trickle(service.port, b"POST /v1/retr", b"x") == b""
        got = trickle(service.port, HEAD + b"Content-Length: 10000\r\n\r\n", b" ")
        assert got.startswith(b"HTTP/1.1 408")
        assert b"too_slow" in got
        assert client.get("/health").status_code == 200


def test_a_client_that_does_not_read_is_left(folder: Path) -> None:
    with running(folder, idle_seconds=1, read_seconds=1, cache=0) as service, service.client() as client:
        questions = [f"Fram polar basin {n}" for n in range(200)]
        body = json.dumps({"questions": questions, "explain": True}).encode()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", service.port))
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            with contextlib.suppress(ConnectionError):
                for _ in range(200):
                    time.sleep(0.05)
                    connection.send(b"x")
                pytest.fail("the service keeps the connection")
        assert client.get("/health").status_code == 200


def test_a_gigabyte_is_not_read(served: Any, client: Any) -> None:
    got = until_closed(served.port, HEAD + b"Content-Length: 1000000000\r\n\r\n{")
    assert got.startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    # A service that read all of it would wait for the rest and reply 408.
    got = until_closed(served.port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 64)
    assert got == b"" or got.startswith(b"HTTP/1.1 413")
    assert client.get("/health").status_code == 200


def test_a_half_closed_connection_gets_its_reply(served: Any) -> None:
    body = json.dumps({"question": QUESTION, "mode": "bm25"}).encode()
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while data := connection.recv(65_536):
            got += data
    assert got.startswith(b"HTTP/1.1 200")
    assert b"fram.md" in got


def test_clients_that_vanish_leave_nothing(served: Any, client: Any) -> None:
    body = json.dumps({"questions": [f"Fram {n}" for n in range(200)]}).encode()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    # Requests that were sent and not read yet can still arrive after a moment without any.
    for _ in range(400):
        reply = client.post("/v1/retrieve", json={"question": QUESTION})
        if reply.status_code == 200 and served.service.waiting == 0:
            break
        time.sleep(0.05)
    assert reply.status_code == 200
    assert served.service.waiting == 0


def test_a_full_queue_is_refused_with_a_time(folder: Path) -> None:
    with (
        running(folder, front=False, concurrency=1, queue=8, batch=1, cache=0) as service,
        service.client() as client,
    ):
        held = threading.Event()
        index = service.service.indexes.find(None).index
        answer = index.retrieve

        def slow(*given: Any, **named: Any) -> Any:
            held.wait(30)
            return answer(*given, **named)

        index.retrieve = slow
        replies: list[Any] = []

        def ask(n: int) -> None:
            replies.append(client.post("/v1/retrieve", json={"question": f"Fram {n}"}))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            if sum(reply.status_code == 429 for reply in replies) >= 11:
                break
            time.sleep(0.05)
        assert client.get("/health").status_code == 200  # the loop is free all the while
        held.set()
        for thread in threads:
            thread.join()
        statuses = sorted(reply.status_code for reply in replies)
        assert statuses == [200] * 9 + [429] * 11
        refused = next(reply for reply in replies if reply.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert client.post("/v1/retrieve", json={"question": "Fram"}).status_code == 200


def test_a_deadline(folder: Path) -> None:
    with running(folder, front=False, deadline=0.3, cache=0, batch=1) as service, service.client() as client:
        index = service.service.indexes.find(None).index
        answer = index.retrieve

        def slow(*given: Any, **named: Any) -> Any:
            time.sleep(1.0)
            return answer(*given, **named)

        index.retrieve = slow
        reply = client.post("/v1/retrieve", json={"question": "Fram"})
        assert (reply.status_code, reply.json()["code"]) == (504, "deadline")


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
    ],
)
def test_a_length_and_chunks(served: Any, lines: bytes) -> None:
    """The chunks count (RFC 9112, 6.3). The connection ends with the reply: a proxy that reads the length may
    see another request behind it.
    """
    smuggled = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = HEAD + lines + b"\r\n"
    got = until_closed(served.port, head + smuggled)
    assert b"openapi" not in got and got.startswith(b"HTTP/1.1 400"), got
    body = b'{"question": "Fram"}'
    got = until_closed(served.port, head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) + smuggled)
    assert got.startswith(b"HTTP/1.1 200") and got.count(b"HTTP/1.1") == 1


def test_a_length_twice_is_one_length(served: Any) -> None:
    body = b'{"question": "Fram"}'
    length = b"Content-Length: %d\r\n" % len(body)
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    got = until_closed(served.port, HEAD + 2 * length + b"\r\n" + body + last)
    assert got.startswith(b"HTTP/1.1 200") and got.count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/v1/documents", "filter=letters>=0&first=0&count=2&containing=m"),
        ("/v1/builds", "count=1"),
        ("/v1/stats", ""),
        ("/v1/fields", ""),
        ("/v1/graph", ""),
        ("/v1/passages/0", "before=0&after=0"),
        ("/v1/graph-view", "limit=3"),
    ],
)
def test_parameters_that_are_unknown_are_refused(client: Any, path: str, known: str) -> None:
    """A misspelt filter must not return everything."""
    assert client.get(f"{path}?{known}").status_code == 200
    for wrong in ("filters=letters<4", "conut=1", "%00=1"):
        reply = client.get(f"{path}?{known}&{wrong}")
        assert (reply.status_code, reply.json()["code"]) == (422, "bad_request"), (path, wrong)
        assert "parameters are: index" in reply.json()["hint"]
