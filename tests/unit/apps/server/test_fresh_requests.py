"""An edit is found by the very next request, however rarely the service looks for changes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index
from tests.support.parts import part

part("starlette", "server")

from tests.support.service import Running, running  # noqa: E402

pytestmark = pytest.mark.usefixtures("loopback")
RARELY = 600.0


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# {name}\n\nThe text is about penguins.\n")
    Index.build(folder, tmp_path / "ix").close()
    return folder


@pytest.fixture
def service(notes: Path) -> Iterator[Running]:
    with running(notes.parent / "ix", refresh_seconds=RARELY) as one:
        yield one


def put(notes: Path, word: str) -> None:
    (notes / "a.md").write_text(f"# a\n\nThe text is about the {word}.\n")


def replies(client: Any, word: str) -> dict[str, Any]:
    """Return for each kind of request a function that sends it."""
    return {
        "search": lambda: client.post("/v1/search", json={"query": word}),
        "explained": lambda: client.post("/v1/retrieve", json={"question": word, "explain": True}),
        "grep": lambda: client.post("/v1/grep", json={"pattern": word}),
        "text": lambda: client.get("/v1/text", params={"path": "a.md"}),
        "several": lambda: several(client, word),
    }


def several(client: Any, word: str) -> Any:
    """Return the reply to the last call of a query over several indexes, which the front answers."""
    plan = client.post("/v1/shard/plan", json={"question": word})
    units = {"units": [0, 1], "scores": [1.0, 0.5], "reading": {"text": word, "replaced": {}, "unknown": []}}
    fields = {"question": word, "state": plan.json()["state"], **units}
    return client.post("/v1/shard/passages", json=fields)


@pytest.mark.parametrize("kind", ["search", "explained", "grep", "text", "several"])
def test_the_next_request_finds_an_edit(service: Running, notes: Path, kind: str) -> None:
    with service.client() as client:
        for word in ("walrus", "narwhal", "puffin"):
            replies(client, "penguins")[kind]()  # plans and replies are cached
            put(notes, word)
            reply = replies(client, word)[kind]()
            assert reply.status_code == 200 and f"about the {word}" in reply.text, reply.text


def test_an_update_that_takes_long_follows_behind_the_answers(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service does not wait until it would look again by itself."""
    import time

    from ketrag_fast.index import freshness

    monkeypatch.setattr(freshness, "QUICK", -1.0)
    with running(notes.parent / "ix", refresh_seconds=RARELY) as service, service.client() as client:
        put(notes, "walrus")
        end = time.monotonic() + 60
        while "about the walrus" not in client.post("/v1/search", json={"query": "walrus"}).text:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_looks_take_a_small_part_of_the_time() -> None:
    """A look of 50 ms is made before five requests, and then only now and then."""
    import asyncio
    import time

    from ketrag_fast.apps.server.looks import Looks

    def run(changes: bool, requests: int, together: bool = False) -> int:
        looked: list[bool] = []

        def look() -> bool:
            time.sleep(0.05)
            looked.append(True)
            return changes

        async def ask() -> None:
            looks = Looks(look)
            if together:
                await asyncio.gather(*(looks.wait() for _ in range(requests)))
            else:
                for _ in range(requests):
                    await looks.wait()

        asyncio.run(ask())
        return len(looked)

    assert 2 <= run(changes=False, requests=100) <= 8
    assert run(changes=True, requests=12) == 12
    assert run(changes=False, requests=100, together=True) <= 2


def test_no_request_waits_for_a_look_that_hangs(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading
    import time

    from ketrag_fast.apps.server import looks

    monkeypatch.setattr(looks, "LONGEST", 0.2)
    end = threading.Event()
    with running(notes.parent / "ix", refresh_seconds=RARELY) as service, service.client() as client:
        service.service.indexes.find(None).look = lambda: end.wait(30)
        try:
            for _ in range(2):
                begin = time.monotonic()
                assert "penguins" in client.post("/v1/search", json={"query": "penguins"}).text
                plan = client.post("/v1/shard/plan", json={"question": "penguins"})
                assert plan.json()["counts"]["keywords"] == {"penguin": 2}
                assert time.monotonic() - begin < 15
        finally:
            end.set()


def test_a_service_that_must_not_look_does_not(notes: Path) -> None:
    from tests.support.service import running

    options = {"refresh_seconds": RARELY, "settings": {"refresh": "never"}}
    with running(notes.parent / "ix", **options) as service, service.client() as client:
        put(notes, "walrus")
        assert "about the walrus" not in client.post("/v1/search", json={"query": "walrus"}).text


def test_a_request_without_the_token_causes_no_look(notes: Path) -> None:
    token = "a-token-of-sufficient-length"
    with running(notes.parent / "ix", token=token, refresh_seconds=RARELY) as service:
        looks: list[bool] = []
        entry = service.service.indexes.find(None)
        look = entry.look
        entry.look = lambda: (looks.append(True), look())[1]
        for headers, count in (({}, 0), ({"Authorization": f"Bearer {token}"}, 1)):
            with service.client(headers=headers) as client:
                client.post("/v1/search", json={"query": "penguins"})
            assert len(looks) == count
