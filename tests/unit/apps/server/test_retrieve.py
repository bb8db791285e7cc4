"""Questions over HTTP, against a service that runs."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION, TEXTS, documents

pytestmark = pytest.mark.usefixtures("loopback")


def plain(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "timings_ms"}


def library(folder: Path, question: str, **options: Any) -> dict[str, Any]:
    with Index.open(folder) as index:
        return json.loads(json.dumps(plain(index.retrieve(question, **options).to_json())))


def test_a_question_gets_what_the_library_gives(client: Any, folder: Path) -> None:
    reply = client.post("/v1/retrieve", json={"question": QUESTION})
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert plain(reply.json()) == library(folder, QUESTION)
    assert reply.json()["passages"][0]["document"] == "fram.md"


@pytest.mark.parametrize("mode", ["bm25", "text", "fused", "walk", "auto"])
def test_modes_budgets_and_reasons(client: Any, folder: Path, mode: str) -> None:
    body = {"question": QUESTION, "mode": mode, "budget": 60, "top": 1, "explain": True}
    reply = client.post("/v1/retrieve", json=body)
    assert plain(reply.json()) == library(folder, QUESTION, mode=mode, budget=60, top=1, explain=True)
    assert reply.json()["tokens"] <= 60
    assert reply.json()["passages"][0]["why"]


def test_many_questions_come_in_their_order(client: Any, folder: Path) -> None:
    questions = [QUESTION, "Gjøa", "nothing of the kind qqq", QUESTION, "Maud"]
    reply = client.post("/v1/retrieve", json={"questions": questions, "budget": 100}).json()
    assert reply["schema"] == "ketrag/contexts/1"
    assert [plain(one) for one in reply["contexts"]] == [library(folder, q, budget=100) for q in questions]


def test_what_a_terminal_would_obey_is_escaped(client: Any) -> None:
    reply = client.post("/v1/retrieve", json={"question": "An odd text", "mode": "bm25"})
    for raw in (b"\x1b", b"\xc2\x9b", "\u202e".encode()):
        assert raw not in reply.content
    assert TEXTS["odd"] in [passage["text"] for passage in reply.json()["passages"]]


def test_questions_of_many_clients_are_put_together_and_none_is_mixed_up(served: Any, folder: Path) -> None:
    questions = [f"{word} {n}" for n in range(40) for word in ("Fram", "Gjøa", "Maud", "Archer")]
    with Index.open(folder) as index:
        wanted = {
            q: plain(c.to_json()) for q, c in zip(questions, index.retrieve_many(questions), strict=True)
        }
    with served.client() as client, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda q: client.post("/v1/retrieve", json={"question": q}).json(), questions))
    for question, reply in zip(questions, found, strict=True):
        assert reply["question"] == question
        assert plain(reply) == json.loads(json.dumps(wanted[question]))


def test_a_reply_is_kept_until_the_index_changes(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    Index.build(documents(), folder, settings=Settings(threads=1)).close()
    with running(folder) as service, service.client() as client:
        first = client.post("/v1/retrieve", json={"question": QUESTION}).content
        assert client.post("/v1/retrieve", json={"question": QUESTION}).content == first
        assert "ketrag_cached_replies_total 1.0" in client.get("/metrics").text
        Index.build([Document("new.md", f"{QUESTION} Nansen did.", "New")], folder).close()
        for _ in range(200):
            reply = client.post("/v1/retrieve", json={"question": QUESTION}).json()
            if reply["generation"] != 1:
                break
            threading.Event().wait(0.05)
        assert "new.md" in [passage["document"] for passage in reply["passages"]]


def test_several_indexes_by_name(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    Index.build([Document("a", "Alpha beta.")], other, settings=Settings(threads=1)).close()
    indexes = {"ships": str(folder), "notes": str(other)}
    with running(folder, indexes=indexes) as service, service.client() as client:
        named = client.get("/v1/indexes").json()["indexes"]
        assert [(one["name"], one["documents"]) for one in named] == [("ships", 4), ("notes", 1)]
        reply = client.post("/v1/retrieve", json={"question": "alpha", "index": "notes"}).json()
        assert [passage["document"] for passage in reply["passages"]] == ["a"]
        reply = client.post("/v1/retrieve", json={"question": "alpha", "index": "../../etc"})
        assert (reply.status_code, reply.json()["code"]) == (404, "unknown_index")
        assert client.get("/v1/stats?index=notes").json()["counts"]["documents"] == 1


def test_stats_graphs_passages_and_documents(client: Any, folder: Path) -> None:
    stats = client.get("/v1/stats").json()
    assert stats["counts"]["documents"] == len(TEXTS)
    assert str(folder) not in json.dumps(stats)
    assert client.get("/v1/graph").json()["kinds"] == ["entity"]
    node = client.get("/v1/graph/colin archer").json()
    assert node["name"] == "COLIN ARCHER"
    assert {source["document"] for source in node["sources"]} == {"fram.md", "odd.md"}
    missing = client.get("/v1/graph/colin archex")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_name")
    assert "COLIN ARCHER" in missing.json()["hint"]
    listed = client.get("/v1/documents?count=2&first=1").json()
    assert (listed["total"], [one["document"] for one in listed["documents"]]) == (4, ["maud.md", "gjoa.md"])
    listed = client.get("/v1/documents?sort=-title&count=3&preview=8").json()["documents"]
    assert [(one["title"], one["preview"]) for one in listed] == [
        ("Odd", "An odd t"),
        ("Maud", "The Maud"),
        ("Gjoa", "The Gjøa"),
    ]
    assert client.get("/v1/documents?sort=size").status_code == 422
    listed = client.get("/v1/documents?containing=GJ").json()
    assert [one["title"] for one in listed["documents"]] == ["Gjoa"]
    few = client.get("/v1/documents", params={"filter": "letters<4"}).json()
    assert [one["document"] for one in few["documents"]] == ["odd.md"]
    for wrong in ("letters<<4", "size=1", "a=1 or " * 300 + "a=1"):
        assert client.get("/v1/documents", params={"filter": wrong}).status_code in (400, 422)
    unit = listed["documents"][0]["unit"]
    near = client.get(f"/v1/passages/{unit}?before=2&after=2").json()
    assert "".join(one["text"] for one in near["passages"]) == TEXTS["gjoa"]
    assert client.get("/v1/passages/999").status_code == 404
    where = {"document": "fram.md", "before": 0, "after": 0}
    for at in (0, 40, 10**6):  # before the text, in it, and after its end
        found = client.get("/v1/passages", params={**where, "at": at}).json()
        assert (found["schema"], found["passages"][0]["document"]) == ("ketrag/passages/1", "fram.md")
        assert [one["unit"] for one in found["passages"]] == [found["unit"]]
    unknown = client.get("/v1/passages", params={"document": "gone.md"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_name")
    assert client.get("/v1/passages", params={"at": 3}).status_code == 422


def test_one_question_does_not_wait_for_all_of_a_large_request(folder: Path) -> None:
    with running(folder, front=False, concurrency=1, batch=1, cache=0) as service, service.client() as client:
        index = service.service.indexes.find(None).index
        answer = index.retrieve
        order: list[str] = []
        gate = threading.Event()

        def noted(question: str, **named: Any) -> Any:
            gate.wait(30)
            order.append(question)
            return answer(question, **named)

        index.retrieve = noted
        with ThreadPoolExecutor(2) as pool:
            many = pool.submit(
                client.post, "/v1/retrieve", json={"questions": [f"Fram {n}" for n in range(50)]}
            )
            while service.service.waiting < 49:
                pass
            one = pool.submit(client.post, "/v1/retrieve", json={"question": "Maud"})
            while service.service.waiting < 50:
                pass
            gate.set()
            assert (many.result().status_code, one.result().status_code) == (200, 200)
        assert order.index("Maud") < 5


@pytest.mark.parametrize("given", ["letters<4", {"letters": {"$lt": 4}}, ' {"letters": {"$lt": 4}}'])
def test_a_filter_over_metadata(client: Any, given: object) -> None:
    names = {f"{name}.md" for name in TEXTS if len(name) < 4}
    question = " ".join(TEXTS.values())[:2000]
    reply = client.post("/v1/retrieve", json={"question": question, "budget": 4000, "filter": given}).json()
    assert {passage["document"] for passage in reply["passages"]} == names
    assert all(
        passage["metadata"] == {"letters": len(passage["document"]) - 3} for passage in reply["passages"]
    )
    assert reply["fitting"] >= len(names)
    nothing = client.post("/v1/retrieve", json={"question": "a ship", "filter": "letters>1000"}).json()
    assert (nothing["reason"], nothing["passages"], nothing["fitting"]) == ("nothing_fits_filter", [], 0)


def test_the_metadata_of_documents_in_every_reply(client: Any) -> None:
    wanted = {"letters": 4}
    passage = client.post("/v1/retrieve", json={"question": QUESTION}).json()["passages"][0]
    assert (passage["document"], passage["metadata"]) == ("fram.md", wanted)
    answer = client.post("/v1/ask", json={"question": QUESTION, "filter": "letters=3"}).json()
    assert [(one["document"], one["metadata"]) for one in answer["passages"]] == [("odd.md", {"letters": 3})]
    near = client.get(f"/v1/passages/{passage['unit']['id']}").json()
    assert near["metadata"] == wanted
    listed = client.get("/v1/documents").json()["documents"]
    assert {one["document"]: one["metadata"] for one in listed} == {
        one.id: dict(one.metadata) for one in documents()
    }


def test_metadata_that_orjson_cannot_write(tmp_path: Path) -> None:
    """Integers above 64 bits, deep nesting, and what JSON does not have."""
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"in": deep}
    metadata = {"large": 10**30, "deep": deep, "control": "\u202e\x9b", "nan": float("nan")}
    folder = tmp_path / "index"
    Index.build(
        [Document("a", "Alpha beta.", metadata=metadata)], folder, settings=Settings(threads=1)
    ).close()
    with running(folder) as service, service.client() as client:
        reply = client.post("/v1/retrieve", json={"question": "alpha"})
        assert reply.status_code == 200
        assert reply.json()["passages"][0]["metadata"] == {**metadata, "nan": None}
        assert "\u202e" not in reply.text and "\x9b" not in reply.text and "NaN" not in reply.text
        assert client.get("/v1/documents").json()["documents"][0]["metadata"]["large"] == 10**30


def test_themes_are_those_of_the_library(client: Any, folder: Path) -> None:
    reply = client.get("/v1/themes")
    assert reply.status_code == 200
    with Index.open(folder) as index:
        name = reply.json()["index"]
        assert reply.json() == json.loads(json.dumps({**index.themes().to_json(), "index": name}))
        few = client.get("/v1/themes", params={"filter": "letters<4"}).json()
        assert few["documents"] == index.themes(filter="letters<4").documents < reply.json()["documents"]
    assert client.get("/v1/themes?filter=colour=red").status_code == 400
    assert client.get("/v1/themes?depth=2").status_code == 422
