"""Connections that a server closed or reset, or that were given up: which requests are sent again."""

from __future__ import annotations

import select
import socket
import threading

import pytest

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.http import connections
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
    reset,
)

pytestmark = pytest.mark.usefixtures("loopback")


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
                assert all(select.select([sock], [], [], 60)[0] for sock in idle_sockets(pool))
            else:
                assert server.ended.acquire(timeout=60)
        assert (server.accepted, len(server.requests)) == (4, 4)
        pool.close()


@pytest.mark.parametrize(("version", "line"), [("HTTP/1.1", "Connection: close\r\n"), ("HTTP/1.0", "")])
def test_a_connection_that_the_server_will_close_is_not_used_again(version: str, line: str) -> None:
    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            server.count(asked)
            content = content_of(*asked)
            peer.sock.sendall(framed(content, JSON + line).replace(b"HTTP/1.1", version.encode(), 1))

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(3):
            assert post(client_of(pool), number) == number
        assert (server.accepted, len(server.requests)) == (3, 3)
        pool.close()


def test_a_connection_that_sent_what_nobody_asked_for_is_not_used_again() -> None:
    go_on = threading.Semaphore(0)

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            server.count(asked)
            peer.sock.sendall(framed(content_of(*asked)))
            go_on.acquire(timeout=60)
            peer.sock.sendall(framed(b'{"number": 99}'))

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(3):
            assert post(client_of(pool), number) == number
            go_on.release()
            assert select.select([idle_sockets(pool)[0]], [], [], 60)[0]
        assert (server.accepted, len(server.requests)) == (3, 3)
        pool.close()


@pytest.mark.parametrize("more", [framed(b'{"number": 99}'), b"HTTP/1.1 200", b"}"])
def test_what_came_with_a_reply_is_no_reply_to_the_next_request(more: bytes) -> None:
    """A second reply is noticed before the request is sent; a part of one makes an attempt fail."""

    def play(server: Server, peer: Peer) -> None:
        while (asked := peer.read()) is not None:
            server.count(asked)
            peer.sock.sendall(framed(content_of(*asked)) + more)

    with Server(play) as server:
        pool = pool_of(server)
        for number in range(6):
            assert post(client_of(pool, attempts=2), number) == number
        assert server.accepted == 6
        if more.endswith(b"}") and len(more) > 1:
            assert len(server.requests) == 6
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
        with pytest.raises(BackendError, match="failed once"):
            post(client, 1)
        assert [body["number"] for _, body in server.requests] == [0, 1]
        assert server.accepted == 1


def test_a_new_connection_that_is_reset_is_a_fault() -> None:
    def play(server: Server, peer: Peer) -> None:
        peer.wait_for_bytes()
        reset(peer.sock)

    with Server(play) as server:
        with pytest.raises(BackendError, match="failed once"):
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
