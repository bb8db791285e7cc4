"""NodeRAG from end to end: by rules, by a model, with replies of every kind, and at the edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Context, Document, Index, Settings
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.papers.noderag.decompositions import by_rules
from ketrag_fast.types import Passage
from tests.process import POLAR, ketrag
from tests.support.chat import Chat
from tests.support.rules import rules

QUESTION = "Which ship did Roald Amundsen sail to the Ross Ice Shelf, and who built the Fram?"
SMALL = {"system": "noderag", "chunk_tokens": 150, "modes": "bm25,noderag"}
OPTIONS = ("--system", "noderag", "--chunk-tokens", "150")
KINDS = {"chunk", "semantic_unit", "attribute", "high_level_element", "relationship"}


def built(folder: Path, documents: Any = POLAR / "articles", **settings: Any) -> Index:
    return Index.build(documents, folder, settings=Settings(**{**SMALL, **settings}))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules") / "ix"
    built(folder).close()
    return folder


def test_the_command_builds_answers_and_shows(tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    done = ketrag("index", str(POLAR / "articles"), "-i", index, *OPTIONS, cwd=tmp_path)
    assert done.code == 0, done.err
    done = ketrag("retrieve", QUESTION, "-i", index, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["mode"] == "noderag" and found["tokens"] <= found["budget"]
    kinds = {passage["unit"]["kind"] for passage in found["passages"]}
    assert kinds >= {"chunk", "semantic_unit", "attribute"}
    done = ketrag("graph", "fRAM", "-i", index, cwd=tmp_path)
    assert done.code == 0 and "FRAM (entity of NodeRAG" in done.out and "attribute: FRAM:" in done.out
    done = ketrag("graph", "Framm", "-i", index, cwd=tmp_path)
    assert done.code != 0 and "FRAM" in done.err
    done = ketrag("stats", "-i", index, "--json", cwd=tmp_path)
    assert json.loads(done.out)["systems"]["noderag"]["decomposed_chunks"] > 50
    done = ketrag("estimate", str(POLAR / "articles"), *OPTIONS, cwd=tmp_path)
    assert done.code == 0, done.err


def texts_of(path: Path) -> dict[str, str]:
    with Tables(path / "index.sqlite") as tables:
        return {document.id: document.text for document in tables.documents()}


def sources_hold(passage: Passage, texts: dict[str, str]) -> None:
    """Every passage leads to texts that are really in their documents."""
    assert passage.kind in KINDS
    for span in passage.sources:
        assert texts[span.document][span.start : span.end] == span.text != ""
    assert texts[passage.document][passage.start : passage.end] == passage.text != ""
    assert (passage.printed is None) == (passage.kind == "chunk") == (not passage.sources)


def test_every_row_cites_what_it_stands_on(path: Path) -> None:
    with Index.open(path) as index:
        texts = texts_of(path)
        for budget in (60, 300, 1200, 100_000):
            context = index.retrieve(QUESTION, mode="noderag", budget=budget)
            assert context.tokens <= budget
            assert sum(section.tokens for section in context.sections) == context.tokens
            for passage in context.passages:
                sources_hold(passage, texts)
                assert passage.said in context.text
        assert {passage.kind for passage in context.passages} == KINDS
        # A unit by rules is a sentence: its source is that sentence.
        said = next(p for p in context.passages if p.kind == "semantic_unit")
        assert said.text == said.printed
        order = [section.name for section in context.sections]
        assert order == ["high_level_elements", "attributes", "semantic_units", "relationships", "text"]
        assert all(section.passages for section in context.sections)


def test_a_smaller_budget_has_the_first_rows(path: Path) -> None:
    with Index.open(path) as index:
        whole, part = (index.retrieve(QUESTION, mode="noderag", budget=b) for b in (4000, 800))
        rows = [(p.kind, p.said) for p in whole.passages]
        assert [(p.kind, p.said) for p in part.passages] == rows[: len(part.passages)]
        assert len(part.passages) < len(rows)


def test_a_budget_that_holds_no_row_has_the_beginning_of_the_first(path: Path, tmp_path: Path) -> None:
    texts = texts_of(path)
    with Index.open(path) as index:
        whole = index.retrieve(QUESTION, mode="noderag", budget=4000).passages[0]
        part = index.retrieve(QUESTION, mode="noderag", budget=40)
        assert part.tokens <= 40 and len(part.passages) == 1
        sources_hold(part.passages[0], texts)
        assert part.passages[0].said and whole.said.startswith(part.passages[0].said)
        assert index.retrieve(QUESTION, mode="noderag", budget=3).reason == "budget_too_small"
    with built(tmp_path / "reference", system="noderag:reference") as index:
        assert index.retrieve(QUESTION, mode="noderag", budget=40).text == ""


def test_what_an_index_lacks_comes_with_the_command_that_adds_it(tmp_path: Path) -> None:
    index = str(tmp_path / "ix")
    assert ketrag("index", str(POLAR / "articles"), "-i", index, cwd=tmp_path).code == 0
    done = ketrag("retrieve", QUESTION, "-i", index, "--mode", "noderag", cwd=tmp_path)
    assert done.code == 4 and f"`ketrag index -i {index} --llm SPEC --modes +noderag`" in done.err
    added = ("--llm", "heuristic", "--modes", "auto,noderag")
    assert ketrag("index", "-i", index, *added, cwd=tmp_path).code == 0
    assert ketrag("retrieve", QUESTION, "-i", index, "--mode", "noderag", cwd=tmp_path).code == 0
    done = ketrag("graph", "Framm", "-i", index, cwd=tmp_path)
    assert done.err.count("FRAM,") == 1  # two graphs have the name


def test_threads_and_additions_make_the_same_bytes(tmp_path: Path) -> None:
    there = [Document(p.name, p.read_text("utf-8")) for p in sorted((POLAR / "articles").iterdir())[:24]]
    with built(tmp_path / "one", there, threads=1) as index:
        first = index.digest
    with built(tmp_path / "many", there, threads=5) as index:
        assert index.digest == first
    built(tmp_path / "grown", there[:11]).close()
    with built(tmp_path / "grown", there[11:]) as index:  # 3.12: adding equals building anew
        assert index.digest == first
    with built(tmp_path / "grown", there[11:]) as index:
        assert index.digest == first and not index.report.changed


def test_elements_go_by_clusters_if_these_are_large(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ketrag_fast.systems.papers.noderag.edges.CLUSTER", 0)
    with built(tmp_path / "ix") as index, Index.open(path) as whole:
        few, many = (ix.stats()["edges"]["node"] for ix in (index, whole))
        assert few < many
        assert index.retrieve(QUESTION, mode="noderag", budget=500).passages
        digest = index.digest
    with built(tmp_path / "again", threads=3) as index:
        assert index.digest == digest


def test_nothing_and_little(tmp_path: Path) -> None:
    def answered(
        name: str, documents: list[Document], question: str = QUESTION, budget: int = 500
    ) -> Context:
        with built(tmp_path / name, documents) as index:
            return index.retrieve(question, mode="noderag", budget=budget)

    assert answered("none", []).reason == "empty_index"
    assert answered("blank", [Document("a", " \n ")]).text == ""
    one = answered(
        "one", [Document("a", "The Fram was built by Colin Archer in Larvik.")], "Who built the Fram?"
    )
    assert "Colin Archer" in one.text
    # No name at all: units alone, and their chunk.
    plain = answered("plain", [Document("a", "it rained and rained. nothing else was said.")], "what rained?")
    assert "it rained" in plain.text
    twice = answered("twice", [Document(n, "The Fram was built by Colin Archer.") for n in "ab"], "Fram?")
    assert twice.passages
    assert (
        answered("zero", [Document("a", "The Fram sailed.")], "Fram", budget=0).reason == "budget_too_small"
    )
    assert answered("unknown", [Document("a", "The Fram sailed.")], "zzz qqq").reason == "no_match"


def test_limits_of_nothing(path: Path) -> None:
    nothing: dict[str, Any] = dict.fromkeys(
        ("node_hits", "cross_nodes", "cross_entities", "cross_relations", "cross_titles"), 0
    )
    nothing["node_fill"] = "none"
    with Index.open(path) as index, rules(**nothing):
        assert index.retrieve("zzz", mode="noderag", budget=500).reason == "no_match"
        assert index.retrieve(QUESTION, mode="noderag", budget=500).text == ""
    with Index.open(path) as index, rules(**nothing | {"cross_entities": 10}):
        found = index.retrieve("Fram", mode="noderag", budget=2000)
        assert {passage.kind for passage in found.passages} == {"attribute"}
    with Index.open(path) as index, rules(**nothing | {"node_fill": "chunks"}):
        found = index.retrieve("Fram", mode="noderag", budget=2000)
        assert {passage.kind for passage in found.passages} == {"chunk"}
        assert len(index.retrieve("Fram", mode="noderag", budget=200).passages) < len(found.passages)
    for steps in (0, 1, 7):
        with Index.open(path) as index, rules(node_steps=steps):
            assert index.retrieve(QUESTION, mode="noderag", budget=500).passages


class Teller:
    """A model that follows the rules, with some replies of each kind that models give."""

    def __init__(self) -> None:
        self.tasks: dict[str, int] = {}

    def __call__(self, request: dict[str, Any]) -> str:
        told, asked = (request["messages"][at]["content"] for at in (0, -1))
        kind = next(
            name
            for name, sign in (
                ("decomposition", "divide it into semantic units"),
                ("relationship", "Write it in the right one"),
                ("attribute", "Write a portrait"),
                ("elements", "high-level"),
            )
            if sign in told
        )
        count = self.tasks[kind] = self.tasks.get(kind, 0) + 1
        if kind == "decomposition":
            return self.decomposed(asked, count)
        if kind == "relationship":
            names = asked.partition("Names: ")[2].partition("\n")[0].split("; ")
            right = {"source": names[0], "relation": "is joined to", "target": names[-1]}
            return json.dumps(right) if count % 2 else "I can not."
        if kind == "attribute":
            return json.dumps({"text": f"A portrait: {asked.partition('- ')[2][:80]}"}) if count % 3 else "no"
        elements = [{"title": f"Theme {count % 4}", "description": f"What they share: {asked[2:90]}"}]
        return json.dumps({"high_level_elements": elements}) if count % 5 else '{"high_level_elements": 7}'

    def decomposed(self, asked: str, count: int) -> str:
        body = asked.partition("\n")[2].rpartition("\n=")[0]
        units = [
            {
                "unit": f"It is said: {unit.text}",
                "entities": list(unit.entities),
                "relationships": [list(row) for row in unit.relationships[:2]],
            }
            for unit in by_rules("", body).units
        ]
        if count % 4 == 1 and units:  # malformed: two parts, nine parts
            units[0]["relationships"] += ["Fram, ship", ", ".join("abcdefghi")]
        if count % 7 == 3:
            return json.dumps({"units": units})[:-40]
        if count % 11 == 5:
            return "There is nothing to say."
        return json.dumps({"units": units})


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Teller]:
    folder, teller = tmp_path_factory.mktemp("model") / "ix", Teller()
    with Chat(teller, listed=None) as server:
        built(folder, llm=f"openai:mini@{server.url}").close()
    return folder, teller


def test_a_model_writes_every_text(told: tuple[Path, Teller]) -> None:
    path, teller = told
    assert set(teller.tasks) == {"decomposition", "relationship", "attribute", "elements"}
    with Index.open(path) as index:
        texts = texts_of(path)
        found = index.retrieve(QUESTION, mode="noderag", budget=100_000)
        for passage in found.passages:
            sources_hold(passage, texts)
        kinds = {passage.kind: passage for passage in reversed(found.passages)}
        assert set(kinds) == KINDS
        # A model's own words are no text of the corpus: the chunk is their source.
        assert kinds["semantic_unit"].said.startswith("It is said: ")
        assert not kinds["semantic_unit"].text.startswith("It is said: ")
        # Where the model gave no portrait, one is put together.
        assert any(p.said.startswith("A portrait: ") for p in found.passages if p.kind == "attribute")
        assert index.stats()["systems"]["noderag"]["undecomposed_chunks"] == 0


def test_nothing_is_asked_twice(told: tuple[Path, Teller], tmp_path: Path) -> None:
    path, teller = told
    before = dict(teller.tasks)
    with Index.open(path) as index:
        digest = index.digest
    with Index.build([], path) as index:  # the model is gone: what is kept is all there is
        assert index.digest == digest
    assert teller.tasks == before


def test_a_recording_is_decomposed(tmp_path: Path) -> None:
    text = (POLAR / "articles" / "fram.md").read_text("utf-8")
    line = {
        "document": "fram.md",
        "start": 0,
        "end": len(text),
        "entities": [["Fram", "ship", ""], ["Colin Archer", "person", ""], ["Fridtjof Nansen", "person", ""]],
        "relations": [["Fram", "Colin Archer", "Fram was built by Colin Archer", 9]],
        "dropped": 0,
    }
    recording = tmp_path / "recorded.jsonl"
    recording.write_text(json.dumps(line) + "\n")
    with built(tmp_path / "ix", POLAR / "articles" / "fram.md", llm=f"replay:{recording}") as index:
        found = index.retrieve("Who built the Fram?", mode="noderag", budget=3000)
        assert {"chunk", "semantic_unit"} <= {passage.kind for passage in found.passages}
        counts = index.stats()["counts"]
        assert counts["node_entities"] == 3 and counts["node_relations"] == 1
