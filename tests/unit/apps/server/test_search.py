"""`/v1/search`, `/v1/text` and `/v1/grep`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index
from tests.support.service import running


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "air.md").write_text("---\nlevel: 1\n---\n# Air\n\nThe zeppelin flew over the coast.\n")
    (folder / "sea.md").write_text("---\nlevel: 2\n---\n# Sea\n\nNo zeppelin was near the ship.\n")
    return folder


@pytest.fixture(scope="module")
def index(notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "ix"
    Index.build(notes, path).close()
    return path


def test_places_and_texts(index: Path, notes: Path, loopback: None) -> None:
    with running(index) as service, service.client() as client:
        data = client.post(
            "/v1/search", json={"query": "zeppelin coast", "snippets": True, "limit": 1}
        ).json()
        hit = data["hits"][0]
        assert (data["schema"], hit["path"], hit["lines"]) == (
            "ketrag/search/1",
            str(notes / "air.md"),
            [6, 6],
        )
        assert hit["snippet"][0]["line"] == 6 and [4, 12] in hit["snippet"][0]["marks"]
        data = client.post("/v1/search", json={"query": "zeppelin", "glob": ["sea*"], "grep": "near"}).json()
        assert [hit["document"] for hit in data["hits"]] == ["sea.md"]
        data = client.post("/v1/grep", json={"pattern": "ZEPPELIN", "ignore_case": True, "limit": 1}).json()
        assert ([one["lines"] for one in data["matches"]], data["more"]) == ([[6, 6]], True)
        data = client.get("/v1/text", params={"path": "air.md:4-6"}).json()
        assert (data["lines"], data["text"]) == ([4, 6], "# Air\n\nThe zeppelin flew over the coast.")


def test_related_passages_over_http(index: Path, loopback: None) -> None:
    with running(index) as service, service.client() as client:
        data = client.post("/v1/search", json={"related": "zeppelin", "limit": 3}).json()
        assert data["mode"] == "related"
        assert {hit["document"] for hit in data["hits"]} == {"air.md", "sea.md"}
        data = client.post("/v1/search", json={"related": "air.md:6"}).json()
        assert [(hit["document"], hit["relation"]) for hit in data["hits"]] == [("sea.md", "shares zeppelin")]
        assert client.post("/v1/search", json={"related": "zeppelin", "query": "x"}).status_code == 422
        assert client.post("/v1/search", json={"related": "no/such.md:3"}).status_code == 404


def test_queries_with_marks(index: Path, loopback: None) -> None:
    """Both endpoints read marks, similar words are named, and `literal` switches all of it off."""
    with running(index) as service, service.client() as client:

        def search(query: str, **more: object) -> tuple[list[str], dict[str, object]]:
            data = client.post("/v1/search", json={"query": query, **more}).json()
            return [hit["document"] for hit in data["hits"]], data

        def retrieve(question: str, **more: object) -> tuple[list[str], dict[str, object]]:
            data = client.post("/v1/retrieve", json={"question": question, **more}).json()
            return [one["document"] for one in data["passages"]], data

        for ask in (search, retrieve):
            assert ask('"the coast"')[0] == ["air.md"]
            assert ask("zeppelin -ship")[0] == ["air.md"]
            assert ask("coas* title:air")[0] == ["air.md"]
            assert ask("zeppelin level:2")[0] == ["sea.md"]
            assert sorted(ask('"the coast" zeppelin', literal=True)[0]) == ["air.md", "sea.md"]
            names, data = ask("zepelin", mode="bm25")
            assert sorted(names) == ["air.md", "sea.md"] and data["replaced"] == {"zepelin": "zeppelin"}
            assert data["notes"] == ['no "zepelin": searched for zeppelin']
            names, data = ask("zepelin", mode="bm25", literal=True)
            assert (names, "replaced" in data, "unknown" in data) == ([], False, False)
            assert ask("xyzzy", mode="bm25")[1]["unknown"] == ["xyzzy"]
        many = client.post("/v1/retrieve", json={"questions": ['"the coast"', "zeppelin"]}).json()["contexts"]
        assert [len(one["passages"]) for one in many] == [1, 2]


def test_what_is_wrong(index: Path, loopback: None) -> None:
    with running(index) as service, service.client() as client:
        replies = {
            client.post("/v1/search", json={}): 422,
            client.post("/v1/search", json={"query": "x", "grep": "a("}): 400,
            client.post("/v1/grep", json={"pattern": "(?=x)"}): 400,
            client.get("/v1/text"): 422,
            client.get("/v1/text", params={"path": "/etc/passwd"}): 404,
            client.get("/v1/text", params={"path": "air.md", "line": "3"}): 422,
            client.get("/v1/search"): 405,
        }
        assert [reply.status_code for reply in replies] == list(replies.values())


def test_rights_hold_and_errors_do_not_tell(index: Path, loopback: None) -> None:
    with running(index, settings={"allow": "level=1"}) as service, service.client() as client:
        found = client.post("/v1/search", json={"query": "zeppelin"}).json()["hits"]
        assert [hit["document"] for hit in found] == ["air.md"]
        found = client.post("/v1/grep", json={"pattern": "zeppelin"}).json()["matches"]
        assert [match["document"] for match in found] == ["air.md"]
        hidden, none = (client.get("/v1/text", params={"path": path}) for path in ("sea.md", "no.md"))
        assert hidden.status_code == 404
        assert hidden.text.replace("sea.md", "X") == none.text.replace("no.md", "X")
