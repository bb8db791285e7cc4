"""Requests on connections that stay open: what a usual reply is, and that all else is left to the client."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from ketrag_fast.models.http import kept_connections
from ketrag_fast.models.http.endpoints import endpoint
from ketrag_fast.models.http.kept_connections import KeptConnections, RawReply
from ketrag_fast.secrets import HIDDEN, Key

pytestmark = pytest.mark.usefixtures("loopback")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: %d\r\n\r\n"


def whole(content: bytes) -> bytes:
    return HEAD % len(content) + content


class Server:
    """Sends one of some replies to each request, of all connections together."""

    def __init__(self, replies: list[bytes | Callable[[socket.socket], None]]) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._replies = iter(replies)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]

    def run(self) -> None:
        """Serve one connection after the other until the listening socket is closed."""
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        while True:
            data = b""
            while b"\r\n\r\n" not in data or not data.endswith(b"}"):
                try:
                    piece = connection.recv(65_536)
                except OSError:
                    return
                if not piece:
                    return
                data += piece
            self.requests.append(data)
            reply = next(self._replies, b"")
            if callable(reply):
                reply(connection)
            elif reply:
                connection.sendall(reply)
            else:
                return

    def stop(self) -> None:
        """Accept no further connections."""
        with suppress(OSError):  # it is closed already
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def serving(
    *replies: bytes | Callable[[socket.socket], None], key: Key | None = None
) -> Iterator[tuple[Server, KeptConnections]]:
    server = Server([*replies])
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    kept = KeptConnections(endpoint(f"http://127.0.0.1:{server.port}", offline=True), key)
    try:
        yield server, kept
    finally:
        kept.close()
        server.stop()
        thread.join(5)


def ask(kept: KeptConnections, seconds: float = 5.0, limit: int = 1000) -> RawReply | None:
    sent = kept.send("/v1/a", b'{"a": 1}', seconds) or kept.send_on_new("/v1/a", b'{"a": 1}', seconds)
    return None if sent is None else kept.receive(sent, limit)


def test_a_connection_is_used_again() -> None:
    with serving(whole(b'{"n": 1}'), whole(b'{"n": 2}'), key=Key("token-of-a-service-0001")) as (
        server,
        kept,
    ):
        assert kept.send("/v1/a", b"{}", 5.0) is None
        assert [ask(kept), ask(kept)] == [
            RawReply("application/json", b'{"n": 1}'),
            RawReply("application/json", b'{"n": 2}'),
        ]
        assert server.connections == 1
        head, _, body = server.requests[1].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /v1/a HTTP/1.1\r\nHost: 127.0.0.1:") and body == b'{"a": 1}'
        assert b"\r\nAuthorization: Bearer token-of-a-service-0001" in head


def test_two_requests_wait_at_the_same_time() -> None:
    with serving(whole(b"1")) as (_, first), serving(whole(b"2")) as (_, second):
        sent = [kept.send_on_new("/v1/a", b"{}", 5.0) for kept in (first, second)]
        found = [kept.receive(one, 10) for kept, one in zip((first, second), sent, strict=True) if one]
        assert [one.content for one in found if one is not None] == [b"1", b"2"]


def test_pieces_of_a_reply_are_put_together() -> None:
    def slowly(connection: socket.socket) -> None:
        for part in (whole(b"abc")[:20], whole(b"abc")[20:-2], b"bc"):
            connection.sendall(part)
            time.sleep(0.02)

    with serving(slowly) as (_, kept):
        assert ask(kept) == RawReply("application/json", b"abc")


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 500 Error\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        HEAD % 1001 + b"a" * 1001,
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 12_000,
        b"",
    ],
)
def test_other_replies_are_left_to_the_client(reply: bytes) -> None:
    with serving(reply, whole(b"{}")) as (server, kept):
        assert ask(kept, 2.0) is None
        assert ask(kept) == RawReply("application/json", b"{}")
        assert server.connections == 2


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        whole(b"{}") + b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_connections_that_end_are_not_used_again(reply: bytes) -> None:
    with serving(reply, whole(b"1")) as (server, kept):
        found = ask(kept)
        assert found is not None and found.content == b"{}"
        second = ask(kept)
        assert second is not None and second.content == b"1" and server.connections == 2


def test_a_connection_with_an_unrequested_reply_is_closed() -> None:
    def later(connection: socket.socket) -> None:
        connection.sendall(whole(b"1"))
        time.sleep(0.05)
        connection.sendall(whole(b"9"))

    with serving(later, whole(b"2")) as (server, kept):
        first = ask(kept)
        time.sleep(0.3)
        second = ask(kept)
        assert first is not None and second is not None
        assert (first.content, second.content, server.connections) == (b"1", b"2", 2)


def test_an_old_connection_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(whole(b"1"), whole(b"2")) as (server, kept):
        assert ask(kept) is not None
        monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 0.0)
        assert ask(kept) is not None and server.connections == 2


def test_a_reply_that_arrived_before_its_time_was_over_is_read_after_it() -> None:
    """The caller waited for another service first."""
    with serving(whole(b"1")) as (_, kept):
        sent = kept.send_on_new("/v1/a", b"{}", 0.3)
        assert sent is not None
        time.sleep(0.4)
        found = kept.receive(sent, 10)
        assert found is not None and found.content == b"1"


def test_a_late_reply_is_not_awaited() -> None:
    with serving(lambda connection: time.sleep(1.0)) as (_, kept):
        began = time.monotonic()
        assert ask(kept, 0.1) is None
        assert time.monotonic() - began < 0.9


def test_nobody_at_the_address() -> None:
    with serving() as (server, kept):
        server.stop()
        assert kept.send_on_new("/v1/a", b"{}", 1.0) is None


def test_a_request_that_is_dropped_closes_its_connection() -> None:
    with serving(whole(b"1")) as (_, kept):
        sent = kept.send_on_new("/v1/a", b"{}", 5.0)
        assert sent is not None
        connection = sent._connection
        del sent
        assert connection is not None and connection.fileno() == -1


def test_a_reply_is_read_once() -> None:
    with serving(whole(b"1")) as (_, kept):
        sent = kept.send_on_new("/v1/a", b"{}", 5.0)
        assert sent is not None and kept.receive(sent, 10) is not None
        with pytest.raises(OSError, match="read before"):
            kept.receive(sent, 10)


def test_keys_are_redacted() -> None:
    key = Key("token-of-a-service-0002")
    with serving(whole(b'{"echo": "token-of-a-service-0002"}'), key=key) as (_, kept):
        found = ask(kept)
        assert found is not None and found.content == f'{{"echo": "{HIDDEN}"}}'.encode()
