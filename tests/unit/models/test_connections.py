"""Connections to endpoints: one piece for each request, used again, dropped when they cannot be trusted."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.embedders.openai import OpenAIEmbedder
from ketrag_fast.models.http import client, connections
from ketrag_fast.models.llms.openai import OpenAIModel
from ketrag_fast.models.llms.protocol import Limits, Prompt
from tests.support.http_peer import (
    JSON,
    LIMIT,
    Peer,
    Server,
    answer,
    client_of,
    content_of,
    framed,
    idle_sockets,
    post,
    reset,
    served,
)

pytestmark = pytest.mark.usefixtures("loopback")


def test_a_request_arrives_in_one_piece() -> None:
    """Head and body apart cost 40 ms: the body waits for an acknowledgement that the server delays."""
    pieces: list[list[bytes]] = []

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            pieces.append(peer.pieces)
            peer.sock.sendall(framed(content_of(*asked)))

    with served(play) as (_server, pool):
        for number in range(5):
            body = {"number": number, "text": "x" * 2000}
            assert client_of(pool).post(body, LIMIT, lambda: None)["number"] == number
        assert idle_sockets(pool)[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert [len(parts) for parts in pieces] == [1] * 5
    assert all(b'"text"' in parts[0] for parts in pieces)


def test_a_large_request_arrives_whole() -> None:
    with served() as (_server, pool):
        found = client_of(pool).post({"text": "x" * 900_000}, LIMIT, lambda: None)
        assert len(found["text"]) == 900_000


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

    with served(play) as (_server, pool):
        for number in range(2):
            assert post(client_of(pool), number) == number
    assert len(heads) == 2
    for head in heads:
        assert b"cookie" not in head and b"authorization" not in head


def test_requests_one_after_another_share_a_connection() -> None:
    with served() as (server, pool):
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

    with served(play) as (server, pool):
        for _ in range(3):
            assert list(client_of(pool).events({}, LIMIT, lambda: None)) == [{"n": 1}]
        assert server.accepted == 1


def test_a_stream_that_does_not_end_is_not_used_again() -> None:
    def play(server: Server, peer: Peer) -> None:
        asked = peer.read()
        assert asked is not None
        server.count(asked)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        data = b"data: [DONE]\n\n"
        peer.sock.sendall(head + b"%x\r\n%b\r\n" % (len(data), data))
        peer.read()

    with served(play) as (server, pool):
        for _ in range(3):
            assert list(client_of(pool).events({}, LIMIT, lambda: None)) == []
        assert (server.accepted, len(server.requests)) == (3, 3)


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


# -- pools and forked processes --------------------------------------------------------------------


def test_many_threads_share_a_pool() -> None:
    with served() as (server, pool), ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: post(client_of(pool), n), range(200))) == list(range(200))
        assert server.accepted <= 8


def test_no_more_connections_are_kept_than_a_model_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LARGEST", 2)
    together = threading.Barrier(5)

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            together.wait(60)
            peer.sock.sendall(framed(content_of(*asked)))

    with served(play) as (server, pool), ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda n: post(client_of(pool), n), range(5)))
        for _ in range(3):
            assert server.ended.acquire(timeout=60)
        assert len(idle_sockets(pool)) == 2


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
    with served() as (server, pool):
        client = client_of(pool)
        assert post(client, 0) == 0

        def work() -> None:
            assert post(client, 1) == 1

        with pool._pool._optional_thread_lock:  # as a thread that is not there in the child may
            forked(work)
        assert server.accepted == 2
        assert post(client, 2) == 2
        assert server.accepted == 2  # the parent's own is still good


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


# -- connections that were closed, reset or given up -----------------------------------------------


@pytest.mark.parametrize("half", [False, True])
def test_a_server_that_closes_idle_connections(half: bool) -> None:
    """Both sides, or its own alone: the next request, with a single attempt, takes another connection."""

    def play(server: Server, peer: Peer) -> None:
        answer(server, peer)
        if half:
            peer.sock.shutdown(socket.SHUT_WR)
            assert peer.read() is None

    with served(play) as (server, pool):
        for number in range(4):
            assert post(client_of(pool), number) == number
            if half:
                assert all(select.select([sock], [], [], 60)[0] for sock in idle_sockets(pool))
            else:
                assert server.ended.acquire(timeout=60)
        assert (server.accepted, len(server.requests)) == (4, 4)


@pytest.mark.parametrize(("version", "line"), [("HTTP/1.1", "Connection: close\r\n"), ("HTTP/1.0", "")])
def test_a_connection_that_the_server_will_close_is_not_used_again(version: str, line: str) -> None:
    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            server.count(asked)
            content = content_of(*asked)
            peer.sock.sendall(framed(content, JSON + line).replace(b"HTTP/1.1", version.encode(), 1))

    with served(play) as (server, pool):
        for number in range(3):
            assert post(client_of(pool), number) == number
        assert (server.accepted, len(server.requests)) == (3, 3)


def test_a_connection_that_sent_what_nobody_asked_for_is_not_used_again() -> None:
    go_on = threading.Semaphore(0)

    def play(server: Server, peer: Peer) -> None:
        while answer(server, peer) is not None:
            go_on.acquire(timeout=60)
            peer.sock.sendall(framed(b'{"number": 99}'))

    with served(play) as (server, pool):
        for number in range(3):
            assert post(client_of(pool), number) == number
            go_on.release()
            assert select.select([idle_sockets(pool)[0]], [], [], 60)[0]
        assert (server.accepted, len(server.requests)) == (3, 3)


@pytest.mark.parametrize("more", [framed(b'{"number": 99}'), b"HTTP/1.1 200", b"}"])
def test_what_came_with_a_reply_is_no_reply_to_the_next_request(more: bytes) -> None:
    """A second reply is noticed before the request is sent; a part of one makes an attempt fail."""

    def play(server: Server, peer: Peer) -> None:
        while answer(server, peer, more=more) is not None:
            pass

    with served(play) as (server, pool):
        for number in range(6):
            assert post(client_of(pool, attempts=2), number) == number
        assert server.accepted == 6
        if more.endswith(b"}") and len(more) > 1:
            assert len(server.requests) == 6


def test_a_request_that_met_a_closed_connection_is_sent_again_once() -> None:
    """The server closes with the request unread, which resets the connection: nothing was processed."""

    def play(server: Server, peer: Peer) -> None:
        answer(server, peer)
        peer.wait_for_bytes()
        reset(peer.sock)

    with served(play) as (server, pool):
        client = client_of(pool, attempts=1)
        for number in range(4):
            assert post(client, number) == number
        assert [body["number"] for _, body in server.requests] == [0, 1, 2, 3]
        assert server.accepted == 4


def test_a_request_that_may_have_been_processed_is_not_sent_again() -> None:
    """The server read it, and then closed the connection without a reply."""

    def play(server: Server, peer: Peer) -> None:
        for number in range(2):
            asked = peer.read()
            assert asked is not None
            server.count(asked)
            if number == 0:
                peer.sock.sendall(framed(content_of(*asked)))

    with served(play) as (server, pool):
        client = client_of(pool, attempts=1)
        assert post(client, 0) == 0
        with pytest.raises(BackendError, match="failed once"):
            post(client, 1)
        assert [body["number"] for _, body in server.requests] == [0, 1]
        assert server.accepted == 1


def test_a_new_connection_that_is_reset_is_a_fault() -> None:
    def play(server: Server, peer: Peer) -> None:
        peer.wait_for_bytes()
        reset(peer.sock)

    with served(play) as (server, pool):
        with pytest.raises(BackendError, match="failed once"):
            post(client_of(pool, attempts=1), 0)
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

    with served(play) as (server, pool):
        client = client_of(pool)
        assert post(client, 0) == 0
        with pytest.raises(Cancelled):
            client.post({"number": 1}, LIMIT, stopped)
        assert post(client, 2) == 2
        assert server.accepted == 2


def test_an_old_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    with served() as (server, pool):
        for number in range(3):
            assert post(client_of(pool), number) == number
        assert server.accepted == 3
        assert server.ended.acquire(timeout=60)
        assert server.ended.acquire(timeout=60)
