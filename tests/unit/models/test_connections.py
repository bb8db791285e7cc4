"""Connections to endpoints: one piece for each request, used again, dropped when they cannot be trusted."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.embedders.openai import OpenAIEmbedder
from ketrag_fast.models.http import connection_pool as connections
from ketrag_fast.models.http.addresses import address
from ketrag_fast.models.http.client import Client
from ketrag_fast.models.http.connection_pool import Connections
from ketrag_fast.models.http.retry import Patience
from ketrag_fast.models.llms.openai import OpenAIModel
from ketrag_fast.models.llms.protocol import Limits, Prompt

pytestmark = pytest.mark.usefixtures("loopback")

LIMIT = 1_000_000
JSON = "Content-Type: application/json\r\n"


def content_of(path: str, body: dict[str, Any]) -> bytes:
    """A good reply."""
    if path.endswith("/models"):
        return b'{"data": [{"id": "m"}]}'
    if path.endswith("/embeddings"):
        rows = [{"index": n, "embedding": [1.0, len(text)]} for n, text in enumerate(body["input"])]
        return json.dumps({"data": rows}).encode()
    if path.endswith("/chat/completions"):
        text = body["messages"][-1]["content"]
        return json.dumps({"choices": [{"message": {"content": f"of {text}"}}]}).encode()
    return json.dumps(body).encode()


def framed(content: bytes, head: str = JSON) -> bytes:
    return f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


class Peer:
    """One connection of the server."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock, self.number = sock, number
        self.pieces: list[bytes] = []

    def read(self) -> tuple[str, dict[str, Any]] | None:
        """The next request, None at the end; what each `recv` gave is kept in `pieces`."""
        self.pieces = []
        data = b""
        while True:
            head, mark, rest = data.partition(b"\r\n\r\n")
            if mark:
                lines = head.decode().split("\r\n")
                sizes = [
                    int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")
                ]
                if len(rest) >= sum(sizes):
                    return lines[0].split()[1], json.loads(rest) if rest else {}
            piece = self.sock.recv(1 << 16)
            if not piece:
                return None
            self.pieces.append(piece)
            data += piece

    def wait_for_bytes(self) -> None:
        """Until a request has arrived, which is not read."""
        select.select([self.sock], [], [], 60)


Serve = Callable[["Server", Peer], None]


def serve_all(server: Server, peer: Peer) -> None:
    while (asked := peer.read()) is not None:
        server.count(asked)
        peer.sock.sendall(framed(content_of(*asked)))


class Server:
    """Counts connections and requests that were read; `play` serves each connection."""

    def __init__(self, play: Serve = serve_all) -> None:
        self._play = play
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.accepted = 0
        self.ended = threading.Semaphore(0)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._listener, *self._sockets):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def count(self, asked: tuple[str, dict[str, Any]]) -> None:
        with self._lock:
            self.requests.append(asked)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._sockets.append(sock)
                self.accepted += 1
                threading.Thread(target=self._one, args=(Peer(sock, self.accepted),), daemon=True).start()

    def _one(self, peer: Peer) -> None:
        with suppress(OSError):
            self._play(self, peer)
        with suppress(OSError):
            peer.sock.close()
        self.ended.release()


def pool_of(server: Server) -> Connections:
    return Connections(address(server.url))


def client_of(pool: Connections, attempts: int = 1) -> Client:
    return Client(pool, "/v1/echo", None, Patience(attempts=attempts, pause=0.01, timeout=60.0))


def post(client: Client, number: int) -> int:
    found = client.post({"number": number}, LIMIT, lambda: None)["number"]
    assert isinstance(found, int)
    return found


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def test_a_request_arrives_in_one_piece() -> None:
    """Head and body apart cost 40 ms: the body waits for an acknowledgement that the server delays."""
    pieces: list[list[bytes]] = []

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            pieces.append(peer.pieces)
            peer.sock.sendall(framed(content_of(*asked)))

    with Server(play) as server:
        pool = pool_of(server)
        client = client_of(pool)
        for number in range(5):
            assert (
                client.post({"number": number, "text": "x" * 2000}, LIMIT, lambda: None)["number"] == number
            )
        wire, used = pool.take(lambda: None)
        assert used and wire._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        wire.close()
        pool.close()
    assert [len(parts) for parts in pieces] == [1] * 5
    assert all(b'"text"' in parts[0] for parts in pieces)


def test_a_large_request_arrives_whole() -> None:
    with Server() as server:
        pool = pool_of(server)
        found = client_of(pool).post({"text": "x" * 900_000}, LIMIT, lambda: None)
        assert len(found["text"]) == 900_000
        pool.close()


def test_requests_one_after_another_share_a_connection() -> None:
    with Server() as server:
        pool = pool_of(server)
        for number in range(20):
            assert post(client_of(pool), number) == number
        assert (server.accepted, pool.opened) == (1, 1)
        pool.close()
        assert server.ended.acquire(timeout=60)  # `close` ends idle connections


def test_a_model_uses_its_connections_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever threads its requests run on: each batch of prompts has threads of its own."""
    monkeypatch.delenv("KETRAG_OPENAI_API_KEY", raising=False)
    with Server() as server:
        model = OpenAIModel(f"openai:m@{server.url}")
        for first in range(0, 60, 6):
            prompts = [Prompt(first + n, "Say.", f"text {first + n}") for n in range(6)]
            got = {reply.number: reply.text for reply in model.replies(prompts, Limits(tokens=50))}
            assert got == {prompt.number: f"of {prompt.text}" for prompt in prompts}
        assert server.accepted <= 4
        model.close()
        embedder = OpenAIEmbedder(f"openai:m@{server.url}", longest=8000)
        before = server.accepted
        for _ in range(5):
            embedder.embed(["a question"])
        assert server.accepted == before  # the one that opening it made
        embedder.embed([f"text {n}" for n in range(1000)])
        assert server.accepted <= before + 3
        embedder.close()


def test_a_stream_leaves_its_connection_for_the_next_request() -> None:
    """Also one whose last bytes come after `[DONE]`, in a piece of their own."""
    go_on = threading.Semaphore(0)

    def play(server: Server, peer: Peer) -> None:
        while peer.read() is not None:
            data = b'data: {"n": 1}\n\ndata: [DONE]\n\n'
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            peer.sock.sendall(head + b"%x\r\n%b\r\n" % (len(data), data))
            go_on.acquire(timeout=60)
            peer.sock.sendall(b"0\r\n\r\n")
            go_on.release()
            peer.wait_for_bytes()
            go_on.acquire(timeout=60)

    with Server(play) as server:
        pool = pool_of(server)
        for _ in range(3):
            assert list(client_of(pool).events({}, LIMIT, lambda: None)) == [{"n": 1}]
            go_on.release()  # the reader is done before the end of the reply was sent
            assert select.select([pool._idle[0][0]._sock], [], [], 60)[0]
        assert server.accepted == 1
        pool.close()
        go_on.release()


def test_a_stream_that_does_not_end_is_not_used_again() -> None:
    def play(server: Server, peer: Peer) -> None:
        asked = peer.read()
        assert asked is not None
        server.count(asked)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        data = b"data: [DONE]\n\n"
        peer.sock.sendall(head + b"%x\r\n%b\r\n" % (len(data), data))
        peer.read()

    with Server(play) as server:
        pool = pool_of(server)
        for _ in range(3):
            assert list(client_of(pool).events({}, LIMIT, lambda: None)) == []
        assert (server.accepted, len(server.requests)) == (3, 3)
        pool.close()


@pytest.mark.parametrize("half", [False, True])
def test_a_server_that_closes_idle_connections(half: bool) -> None:
    """Both sides, or its own alone: the next request, with a single attempt, takes another connection."""

    def play(server: Server, peer: Peer) -> None:
        asked = peer.read()
        assert asked is not None
        server.count(asked)
        peer.sock.sendall(framed(content_of(*asked)))
        if half:
            peer.sock.shutdown(socket.SHUT_WR)
            assert peer.read() is None

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(4):
            assert post(client_of(pool), number) == number
            if half:
                assert select.select([pool._idle[0][0]._sock], [], [], 60)[0]
            else:
                assert server.ended.acquire(timeout=60)
        assert (server.accepted, len(server.requests)) == (4, 4)
        pool.close()


def test_what_the_server_will_close_or_was_not_asked_for_is_not_used_again() -> None:
    endings = [
        ("HTTP/1.1", "Connection: close\r\n", b""),
        ("HTTP/1.0", "", b""),
        ("HTTP/1.1", "", b"HTTP/1.1 200"),
    ]

    def play(server: Server, peer: Peer) -> None:
        version, line, more = endings[(peer.number - 1) % len(endings)]
        while (asked := peer.read()) is not None:
            server.count(asked)
            content = content_of(*asked)
            peer.sock.sendall(framed(content, JSON + line).replace(b"HTTP/1.1", version.encode(), 1) + more)

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(6):
            assert post(client_of(pool), number) == number
        assert (server.accepted, len(server.requests)) == (6, 6)
        pool.close()


def test_a_request_that_met_a_closed_connection_is_sent_again_once() -> None:
    """The server closes with the request unread, which resets the connection: nothing was processed."""

    def play(server: Server, peer: Peer) -> None:
        asked = peer.read()
        assert asked is not None
        server.count(asked)
        peer.sock.sendall(framed(content_of(*asked)))
        peer.wait_for_bytes()
        reset(peer.sock)

    with Server(play) as server:
        pool = pool_of(server)
        client = client_of(pool, attempts=1)
        for number in range(4):
            assert post(client, number) == number
        assert [body["number"] for _, body in server.requests] == [0, 1, 2, 3]
        assert server.accepted == 4
        pool.close()


def test_a_request_that_may_have_been_processed_is_not_sent_again() -> None:
    """The server read it, and then closed the connection without a reply."""

    def play(server: Server, peer: Peer) -> None:
        for number in range(2):
            asked = peer.read()
            assert asked is not None
            server.count(asked)
            if number == 0:
                peer.sock.sendall(framed(content_of(*asked)))

    with Server(play) as server:
        client = client_of(pool_of(server), attempts=1)
        assert post(client, 0) == 0
        with pytest.raises(BackendError, match="failed 1 times"):
            post(client, 1)
        assert [body["number"] for _, body in server.requests] == [0, 1]
        assert server.accepted == 1


def test_a_new_connection_that_is_reset_is_a_fault() -> None:
    def play(server: Server, peer: Peer) -> None:
        peer.wait_for_bytes()
        reset(peer.sock)

    with Server(play) as server:
        with pytest.raises(BackendError, match="failed 1 times"):
            post(client_of(pool_of(server), attempts=1), 0)
        assert server.accepted == 1


def test_a_connection_that_was_given_up_is_not_used_again() -> None:
    """Its reply may still come, before the next one."""
    asked_twice = threading.Event()

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            server.count(asked)
            if asked[1].get("number") == 1:
                asked_twice.set()
                continue
            peer.sock.sendall(framed(content_of(*asked)))

    def stopped() -> None:
        if asked_twice.is_set():
            raise Cancelled("enough")

    with Server(play) as server:
        pool = pool_of(server)
        client = client_of(pool)
        assert post(client, 0) == 0
        with pytest.raises(Cancelled):
            client.post({"number": 1}, LIMIT, stopped)
        assert post(client, 2) == 2
        assert server.accepted == 2
        pool.close()


def test_an_old_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    with Server() as server:
        pool = pool_of(server)
        for number in range(3):
            assert post(client_of(pool), number) == number
        assert server.accepted == 3
        assert server.ended.acquire(timeout=60)
        assert server.ended.acquire(timeout=60)
        pool.close()


def test_many_threads_share_a_pool() -> None:
    with Server() as server, ThreadPoolExecutor(8) as threads:
        pool = pool_of(server)
        assert list(threads.map(lambda n: post(client_of(pool), n), range(200))) == list(range(200))
        assert server.accepted <= 8
        pool.close()


def test_no_more_connections_are_kept_than_a_model_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LARGEST", 2)
    together = threading.Barrier(5)

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            together.wait(60)
            peer.sock.sendall(framed(content_of(*asked)))

    with Server(play) as server, ThreadPoolExecutor(5) as threads:
        pool = pool_of(server)
        list(threads.map(lambda n: post(client_of(pool), n), range(5)))
        for _ in range(3):
            assert server.ended.acquire(timeout=60)
        assert len(pool._idle) == 2
        pool.close()


@pytest.fixture
def forked() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Runs a function in a forked child; it must return, and not raise."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")

    def run(work: Callable[[], object]) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        timer = threading.Timer(60, os.kill, (child, 9))
        timer.start()
        _, status = os.waitpid(child, 0)
        timer.cancel()
        assert status == 0

    yield run


def test_a_child_process_opens_connections_of_its_own(forked: Callable[[Callable[[], object]], None]) -> None:
    with Server() as server:
        pool = pool_of(server)
        client = client_of(pool)
        assert post(client, 0) == 0

        def work() -> None:
            assert post(client, 1) == 1

        with pool._lock:  # as a thread that is not there in the child may
            forked(work)
        assert server.accepted == 2
        assert post(client, 2) == 2
        assert server.accepted == 2  # the parent's own is still good
        pool.close()


def test_a_child_process_embeds(forked: Callable[[Callable[[], object]], None]) -> None:
    with Server() as server:
        embedder = OpenAIEmbedder(f"openai:m@{server.url}", longest=8000)
        texts = [f"text {n}" for n in range(200)]
        expected = embedder.embed(texts).tolist()

        def work() -> None:
            assert embedder.embed(texts).tolist() == expected
            assert embedder.embed(texts[:1]).tolist() == expected[:1]

        forked(work)
        embedder.close()


@pytest.mark.parametrize("takes", ["base64", "float"])
def test_vectors_are_asked_for_in_base64_and_else_as_numbers(takes: str) -> None:
    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            _, body = asked
            server.count(asked)
            if body["encoding_format"] != takes:
                refusal = framed(b'{"error": {"message": "unknown encoding_format"}}')
                peer.sock.sendall(refusal.replace(b"200 OK", b"400 Bad Request"))
                return
            rows = [np.array([1.0, len(text)], "<f4") for text in body["input"]]
            form = {
                "base64": lambda row: base64.b64encode(row.tobytes()).decode(),
                "float": np.ndarray.tolist,
            }
            data = [{"index": n, "embedding": form[takes](row)} for n, row in enumerate(rows)]
            peer.sock.sendall(framed(json.dumps({"data": data}).encode()))

    with Server(play) as server:
        embedder = OpenAIEmbedder(f"openai:m@{server.url}", longest=8000)
        vectors = embedder.embed(["four", "fourteen more"])
        embedder.close()
    assert vectors.tolist() == pytest.approx(np.array([[1, 4], [1, 13]]) / np.sqrt([[17], [170]]))
    asked = [body["encoding_format"] for _, body in server.requests]
    assert asked == (["base64", "base64"] if takes == "base64" else ["base64", "float", "float"])
