"""Documents that clients add: found at once, and refused where writing is not allowed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from tests.support.service import running
from tests.unit.apps.server.conftest import documents

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    Index.build(documents(), folder, settings=Settings(threads=1)).close()
    return folder


def found(client: Any, question: str) -> list[str]:
    reply = client.post("/v1/retrieve", json={"question": question}).json()
    return [passage["document"] for passage in reply["passages"]]


def test_what_is_added_is_found_and_what_has_its_id_gives_way(own: Path) -> None:
    with running(own, writable=True, refresh_seconds=60) as service, service.client() as client:
        assert client.get("/v1/indexes").json()["writable"] is True
        new = {"id": "belgica.md", "text": "The Belgica wintered in the pack ice.", "title": "Belgica"}
        reply = client.post("/v1/documents", json={"documents": [new]})
        assert reply.status_code == 200
        assert reply.json()["documents"] == {"total": 5, "added": 1, "removed": 0, "updated": 0}
        assert str(own) not in reply.text
        assert found(client, "Belgica pack ice")[0] == "belgica.md"
        other = {**new, "text": "A quagga is an extinct zebra.", "metadata": {"year": 1883, "tags": ["a"]}}
        reply = client.post("/v1/documents", json={"documents": [other]}).json()
        assert reply["documents"]["updated"] == 1
        assert found(client, "quagga")[0] == "belgica.md"
        twice = client.post("/v1/documents", json={"documents": [new, new]}).json()
        assert [failure["document"] for failure in twice["failures"]] == ["belgica.md"]
    with Index.open(own) as index:
        assert index.inspect.document_count == 5


def test_what_is_removed_is_gone(own: Path) -> None:
    with running(own, writable=True, refresh_seconds=60) as service, service.client() as client:
        reply = client.post("/v1/documents", json={"remove": ["fram.md", "no*", "nothing.md"]}).json()
        assert reply["documents"] == {"total": 3, "added": 0, "removed": 1, "updated": 0}
        assert [failure["document"] for failure in reply["failures"]] == ["no*", "nothing.md"]
        assert "fram.md" not in found(client, "Who sailed the Fram across the polar basin?")
        new = {"id": "fram.md", "text": "The Fram is a museum ship now."}
        both = client.post("/v1/documents", json={"documents": [new], "remove": ["maud.md"]}).json()
        assert both["documents"] == {"total": 3, "added": 1, "removed": 1, "updated": 0}
        empty = client.post("/v1/documents", json={"index": None})
        assert (empty.status_code, empty.json()["code"]) == (422, "bad_request")


def test_it_is_refused_unless_it_is_allowed(client: Any) -> None:
    reply = client.post("/v1/documents", json={"documents": [{"id": "a", "text": "b"}]})
    assert (reply.status_code, reply.json()["code"]) == (403, "read_only")
    assert client.get("/v1/indexes").json()["writable"] is False


@pytest.mark.parametrize(
    "one",
    [
        {},
        {"id": "a"},
        {"id": "", "text": "b"},
        {"id": 1, "text": "b"},
        {"id": "a", "text": "b", "path": "/etc"},
        "a",
    ],
    ids=str,
)
def test_documents_that_are_none(own: Path, one: Any) -> None:
    with running(own, writable=True) as service, service.client() as client:
        reply = client.post("/v1/documents", json={"documents": [one]})
        assert (reply.status_code, reply.json()["code"]) == (422, "bad_request")
        assert service.service.indexes.find(None).index.generation == 1


def test_one_build_at_a_time_and_questions_go_on(own: Path) -> None:
    with running(own, writable=True, cache=0) as service, service.client() as client:
        replies: list[Any] = []

        def add(n: int) -> None:
            body = {"documents": [{"id": f"n{n}", "text": f"Number {n} is here."}]}
            replies.append(client.post("/v1/documents", json=body))

        threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert found(client, "Fram polar basin")[0] == "fram.md"
        statuses = [reply.status_code for reply in replies]
        assert set(statuses) <= {200, 409}
        assert service.service.indexes.find(None).index.inspect.document_count == 4 + statuses.count(200)
        assert statuses.count(200) >= 1


def test_builds_and_example_questions_are_served(own: Path) -> None:
    Index.build((), own, examples=["Who sailed the Fram?"]).close()
    with running(own, writable=True, refresh_seconds=60) as service, service.client() as client:
        assert client.get("/v1/indexes").json()["indexes"][0]["examples"] == ["Who sailed the Fram?"]
        client.post("/v1/documents", json={"documents": [{"id": "a", "text": "The Belgica."}]})
        reply = client.get("/v1/builds").json()
        assert (reply["schema"], reply["running"]) == ("ketrag/builds/1", None)
        assert [(one["generation"], one["added"]) for one in reply["builds"]] == [(2, 1), (1, 4)]
        assert client.get("/v1/builds?count=0").json()["builds"] == []
        assert client.get("/v1/builds?count=x").status_code == 422
    with running(own, settings={"allow": "letters=4"}) as service, service.client() as client:
        assert client.get("/v1/indexes").json()["indexes"][0]["examples"] == []
        assert client.get("/v1/builds").json()["builds"] == []
