"""Indexes of other machines are searched as parts: copied once for each of their generations."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import BackendError, ConfigError, DeadlineExceeded, IndexDamaged, NetworkForbidden
from tests.index.test_several import QUESTIONS, answers
from tests.support.merging import build, document, split
from tests.support.service import running

TOKEN = "a-token-of-some-length"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KETRAG_TOKEN", TOKEN)
    return tmp_path / "cache" / "ketrag-fast" / "joined"


def test_services_and_folders_answer_like_one_index(tmp_path: Path, cache: Path) -> None:
    documents = [document(f"d{number}") for number in range(12)]
    modes = ("bm25", "walk", "text", "fused")
    settings = Settings(modes=",".join(modes))
    for name, own in zip("abc", split(documents, 3, random.Random(1)), strict=True):
        build(tmp_path / name, own, settings)
    build(tmp_path / "whole", sorted(documents, key=lambda one: one.id), settings)
    with (
        running(tmp_path / "a", share=True, token=TOKEN) as one,
        running(tmp_path / "b", share=True, token=TOKEN) as two,
        Index.open(tmp_path / "whole") as whole,
        Index.open([one.url, str(tmp_path / "c"), two.url]) as several,
    ):
        for more in ({}, {"filter": "year>=1920"}, {"allow": "year>=1915"}):
            assert answers(several, modes, **more) == answers(whole, modes, **more)
        copies = {path.name for path in cache.glob("part-*") if path.is_dir()}
        assert len(copies) == 2 and not several.refresh()
        with Index.open(tmp_path / "b") as index:
            removed = index.inspect.documents()[0].document
            index.update(remove=removed)
        assert several.refresh()
        assert several.inspect.document_count == 11
        assert len({path.name for path in cache.glob("part-*") if path.is_dir()} - copies) == 1


def test_services_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "a", [document("d0")])
    build(tmp_path / "b", [document("d1")])
    local = str(tmp_path / "b")
    with running(tmp_path / "a", share=True, token=TOKEN) as service:
        monkeypatch.setenv("KETRAG_TOKEN", "wrong")
        with pytest.raises(BackendError, match="401"):
            Index.open([service.url, local])
        monkeypatch.setenv("KETRAG_TOKEN", TOKEN)
        with pytest.raises(ConfigError, match="twice"):
            Index.open([service.url, service.url + "/"])
        url = service.url
    with pytest.raises(BackendError, match="cannot be searched"):  # it ended
        Index.open([url, local])
    skip = Settings(missing="skip")
    with Index.open([url, local], settings=skip) as several:
        assert url in several.retrieve(QUESTIONS[0], mode="bm25").warnings[0]
    with running(tmp_path / "a", token=TOKEN) as service, pytest.raises(BackendError, match="403"):
        Index.open([service.url, local])
    with pytest.raises(NetworkForbidden):
        Index.open(["http://192.0.2.1:8765", local], settings=Settings(offline=True))
    with pytest.raises(ConfigError, match="unencrypted"):
        Index.open(["http://192.0.2.1:8765", local])
    with pytest.raises(ConfigError, match="--share"):
        from ketrag_fast.apps.server.options import ServerOptions

        ServerOptions({"a": local}, {"allow": "year>1"}, share=True)
        with running(tmp_path / "a", share=True, settings={"allow": "year>1900"}):
            pass


@contextmanager
def peer(reply: bytes | None) -> Iterator[str]:
    """A peer that sends these bytes to each request, or accepts it and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def run() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                if reply is not None:
                    connection.recv(4096)
                    connection.sendall(reply)
                    connection.close()

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for connection in held:
            connection.close()


def test_peers_that_answer_wrong_or_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "b", [document("d1")])
    local = str(tmp_path / "b")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    state = b'{"schema": "ketrag/part/1", "digest": "x", "generation": 1}'
    for body in (b"<html>", b'{"schema": "other"}', b"[]", b'{"schema": "ketrag/part/1", "digest": "x"}'):
        with peer(head % len(body) + body) as url, pytest.raises(IndexDamaged):
            Index.open([url, local])
    with peer(head % len(state) + state) as url, pytest.raises(IndexDamaged):  # the bundle is none
        Index.open([url, local])
    with peer(head % 999 + state) as url, pytest.raises(BackendError):  # it breaks off
        Index.open([url, local])
    with peer(None) as url, pytest.raises(DeadlineExceeded):
        Index.open([url, local], deadline=0.5)
    monkeypatch.setattr("ketrag_fast.building.remote_parts._STATE_SECONDS", 0.3)
    with peer(None) as url, pytest.raises(BackendError, match="in time"):
        Index.open([url, local])


@contextmanager
def late(port: int, seconds: float) -> Iterator[str]:
    """A relay to a service that passes on each reply only after some time."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def relay(client: socket.socket) -> None:
            with suppress(OSError), client, socket.create_connection(("127.0.0.1", port)) as there:
                there.settimeout(10)
                there.sendall(client.recv(65_536))
                wait = seconds
                while piece := there.recv(1 << 20):
                    time.sleep(wait)
                    client.sendall(piece)
                    wait = 0.0

        def run() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=relay, args=(server.accept()[0],), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_service_that_answers_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In time it counts like any other; beyond the limit it is an error, or left out and named."""
    build(tmp_path / "a", [document("d0")])
    build(tmp_path / "b", [document("d1")])
    local = str(tmp_path / "b")
    with running(tmp_path / "a", share=True, token=TOKEN) as service:
        with late(service.port, 0.3) as url, Index.open([url, local]) as several:
            assert several.inspect.document_count == 2
        monkeypatch.setattr("ketrag_fast.building.remote_parts._STATE_SECONDS", 0.2)
        with late(service.port, 1.0) as url:
            with pytest.raises(BackendError, match="in time"):
                Index.open([url, local])
            with Index.open([url, local], settings=Settings(missing="skip")) as several:
                assert several.inspect.document_count == 1
                assert url in several.retrieve(QUESTIONS[0], mode="bm25").warnings[0]
