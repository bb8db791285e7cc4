"""Connections to endpoints: one piece for each request, used again, dropped when they cannot be trusted."""

from __future__ import annotations

import base64
import json
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.models.embedders.openai import OpenAIEmbedder
from ketrag_fast.models.http import client
from ketrag_fast.models.llms.openai import OpenAIModel
from ketrag_fast.models.llms.protocol import Limits, Prompt
from tests.support.http_peer import (
    JSON,
    LIMIT,
    Peer,
    Server,
    client_of,
    content_of,
    framed,
    idle_sockets,
    pool_of,
    post,
)

pytestmark = pytest.mark.usefixtures("loopback")


def test_a_request_arrives_in_one_piece() -> None:
    """Head and body apart cost 40 ms: the body waits for an acknowledgement that the server delays."""
    pieces: list[list[bytes]] = []

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            pieces.append(peer.pieces)
            peer.sock.sendall(framed(content_of(*asked)))

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(5):
            body = {"number": number, "text": "x" * 2000}
            assert client_of(pool).post(body, LIMIT, lambda: None)["number"] == number
        assert idle_sockets(pool)[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        pool.close()
    assert [len(parts) for parts in pieces] == [1] * 5
    assert all(b'"text"' in parts[0] for parts in pieces)


def test_a_large_request_arrives_whole() -> None:
    with Server() as server:
        pool = pool_of(server)
        found = client_of(pool).post({"text": "x" * 900_000}, LIMIT, lambda: None)
        assert len(found["text"]) == 900_000
        pool.close()


def test_neither_proxies_nor_passwords_nor_cookies_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the environment and of replies: a request goes to the named host, with its key alone."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    heads: list[bytes] = []

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            heads.append(b"".join(peer.pieces).split(b"\r\n\r\n")[0].lower())
            peer.sock.sendall(framed(content_of(*asked), f"{JSON}Set-Cookie: a=b; Path=/\r\n"))

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(2):
            assert post(client_of(pool), number) == number
        pool.close()
    assert len(heads) == 2
    for head in heads:
        assert b"cookie" not in head and b"authorization" not in head


def test_requests_one_after_another_share_a_connection() -> None:
    with Server() as server:
        pool = pool_of(server)
        for number in range(20):
            assert post(client_of(pool), number) == number
        assert server.accepted == 1
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


def test_a_stream_leaves_its_connection_for_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose last bytes come after `[DONE]`, in a piece of their own."""
    monkeypatch.setattr(client, "_END_SECONDS", 60.0)

    def play(server: Server, peer: Peer) -> None:
        while peer.read() is not None:
            data = b'data: {"n": 1}\n\ndata: [DONE]\n\n'
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            peer.sock.sendall(head + b"%x\r\n%b\r\n" % (len(data), data))
            time.sleep(0.05)
            peer.sock.sendall(b"0\r\n\r\n")

    with Server(play) as server:
        pool = pool_of(server)
        for _ in range(3):
            assert list(client_of(pool).events({}, LIMIT, lambda: None)) == [{"n": 1}]
        assert server.accepted == 1
        pool.close()


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
