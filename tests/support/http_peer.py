"""A server of one test, whose replies the test writes byte by byte."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from ketrag_fast.models.http.client import Client
from ketrag_fast.models.http.connections import Connections
from ketrag_fast.models.http.endpoints import RetryPolicy, address

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
        """Until a request has arrived, which is not read, or the test has ended."""
        if self.sock.fileno() >= 0:
            select.select([self.sock], [], [], 60)


Serve = Callable[["Server", Peer], None]


def serve_all(server: Server, peer: Peer) -> None:
    while answer(server, peer) is not None:
        pass


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


def answer(server: Server, peer: Peer, head: str = JSON, more: bytes = b"") -> dict[str, Any] | None:
    """Read, count and answer one request; its body, or None at the end."""
    if (asked := peer.read()) is None:
        return None
    server.count(asked)
    peer.sock.sendall(framed(content_of(*asked), head) + more)
    return asked[1]


@contextmanager
def served(play: Serve = serve_all) -> Iterator[tuple[Server, Connections]]:
    """A server and a pool of connections to it."""
    with Server(play) as server:
        pool = Connections(address(server.url))
        yield server, pool
        pool.close()


def idle_sockets(pool: Connections) -> list[socket.socket]:
    """The sockets of a pool that wait for a request."""
    return [kept._connection._network_stream._sock for kept in pool._pool.connections]  # type: ignore[attr-defined]


def client_of(pool: Connections, attempts: int = 1) -> Client:
    return Client(pool, "/v1/echo", None, RetryPolicy(attempts=attempts, pause=0.01, timeout=60.0))


def post(client: Client, number: int) -> int:
    found = client.post({"number": number}, LIMIT, lambda: None)["number"]
    assert isinstance(found, int)
    return found


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
