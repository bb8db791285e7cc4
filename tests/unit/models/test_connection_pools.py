"""A pool of connections shared by threads, and processes that were forked."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ketrag_fast.models.embedders.openai import OpenAIEmbedder
from ketrag_fast.models.http import connections
from tests.support.http_peer import (
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
        assert len(idle_sockets(pool)) == 2
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

        with pool._pool._optional_thread_lock:  # as a thread that is not there in the child may
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
