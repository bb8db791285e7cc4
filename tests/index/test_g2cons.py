"""G2ConS from end to end: presets, modes, core chunks by concepts, and what happens at the edges."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Context, Document, Index, Settings
from ketrag_fast.errors import InputError, ModeUnavailable
from ketrag_fast.kernels.text import unpack
from tests.oracles import concepts as plain
from tests.process import POLAR, ketrag

QUESTION = "Which ship did Amundsen sail to the Ross Ice Shelf, and who built her?"
SYSTEM = ("--system", "g2cons", "--llm", "heuristic")
SMALL = {"system": "g2cons", "chunk_tokens": 150, "theta_sem": 0.3}


def built(folder: Path, documents: Any = POLAR / "articles", **settings: Any) -> Index:
    return Index.build(documents, folder, settings=Settings(**{**SMALL, **settings}))


def ask(path: Path, mode: str, budget: int, question: str = QUESTION, **settings: Any) -> Context:
    with Index.open(path, settings=Settings(**settings)) as index:
        return index.retrieve(question, mode=mode, budget=budget)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a skeleton of the core chunks."""
    folder = tmp_path_factory.mktemp("read")
    built(folder, llm="heuristic", core_ratio=0.5).close()
    return folder


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unread")
    built(folder).close()
    return folder


def units(context: Context) -> list[int]:
    return [passage.unit for passage in context.passages]


def test_the_command_builds_and_answers(tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    done = ketrag("index", str(POLAR / "articles"), "-i", index, *SYSTEM, cwd=tmp_path)
    assert done.code == 0, done.err
    done = ketrag("retrieve", QUESTION, "-i", index, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["mode"] == "g2cons"
    assert found["passages"]
    assert found["warnings"] == []
    assert "-----Entities-----" in found["context"]


def test_without_a_skeleton_texts_get_the_budget_and_the_mode_says_so(unread: Path) -> None:
    found = ask(unread, "g2cons", 900)
    assert found.passages
    assert "-----Entities-----" not in found.text
    assert "core-graph is empty" in found.warnings[0]


def test_the_skeleton_is_of_the_chunks_that_concepts_chose(read: Path) -> None:
    with Index.open(read) as index:
        stages = index.inspect.arrays()
    concepts, core = stages["concepts"], stages["core_concept"]
    indptr = concepts["chunk_concepts_indptr"].tolist()
    flat = concepts["chunk_concepts_indices"].tolist()
    rows = [flat[a:b] for a, b in pairwise(indptr)]
    ranks = core["concept_rank"].tolist()
    assert sum(ranks) == pytest.approx(1)
    assert core["core"].tolist() == plain.choose_chunks(rows, ranks, (len(rows) + 1) // 2)
    assert set(stages["replies"]["reply_chunk"].tolist()) <= set(core["core"].tolist())


@pytest.mark.parametrize("budget", [0, 1, 30, 200, 900, 4000])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_a_context_holds_each_unit_once_and_keeps_to_its_budget(
    read: Path, budget: int, share: float
) -> None:
    found = ask(read, "g2cons", budget, kg_share=share)
    assert found.tokens <= budget
    assert sum(section.tokens for section in found.sections) == found.tokens
    assert len(set(units(found))) == len(units(found))
    alone = ask(read, "g2cons", budget, kg_share=0.0).text
    if share == 1.0:
        assert found.text == ask(read, "skeleton", budget).text
    if not ask(read, "skeleton", budget).text:  # nothing of the tables fits
        assert found.text == alone


def test_what_both_would_print_comes_first(read: Path) -> None:
    budget = 2000
    tables = units(ask(read, "skeleton", budget))
    texts = units(ask(read, "g2cons", budget, kg_share=0.0))
    common = sorted(set(tables) & set(texts), key=lambda unit: (tables.index(unit) + texts.index(unit), unit))
    found = ask(read, "g2cons", budget, kg_share=0.6)
    assert common, "the test needs a unit that both print"
    assert units(found)[: len(common)] == common
    assert set(units(found)) <= set(tables) | set(texts)


def test_edges_of_a_question(unread: Path) -> None:
    nothing = ask(unread, "g2cons", 900, "xyzzy plugh")
    assert (nothing.text, nothing.reason) == ("", "no_match")
    cut = ask(unread, "g2cons", 20)
    assert cut.text
    assert cut.tokens <= 20


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ([], {}),
        (["Amundsen sailed the Fram."], {}),
        (["the of and"], {}),  # no concept at all
        (["ice ice"] * 5, {}),  # one concept, in every chunk
        (["Fram sailed south.", "Fram sailed north.", "Maud sailed."], {"theta_sem": 1.0}),  # no edge
        (["Fram sailed south.", "Fram sailed north.", "Maud sailed."], {"theta_sem": -1.0, "theta_co": 0}),
        (["Fram sailed south.", "Fram sailed north."], {"core_ratio": 0.0}),
        (["Fram sailed south.", "Fram sailed north."], {"core_ratio": 1.0}),
        (["Fram sailed south. " * 40, "Fram went north. " * 40], {"split_level": 2}),
    ],
)
def test_edges_of_a_corpus(tmp_path: Path, texts: list[str], settings: dict[str, Any]) -> None:
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]
    with built(tmp_path / "index", documents, llm="heuristic", **settings) as index:
        found = index.retrieve("Fram ice sailed", mode="g2cons", budget=500)
        assert bool(found.text) == any(word in " ".join(texts) for word in ("Fram", "ice")), found


def test_the_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    digests = set()
    for threads in (1, 2, 5):
        with built(tmp_path / str(threads), threads=threads) as index:
            digests.add(index.digest)
    assert len(digests) == 1


def test_other_systems_choose_by_concepts_too(tmp_path: Path) -> None:
    with Index.build(
        POLAR / "articles",
        tmp_path / "index",
        settings=Settings(system="ket-rag", core_selection="concept", core_ratio=0.3, llm="heuristic"),
    ) as index:
        stages = index.inspect.arrays()
        chunks = len(stages["units"]["chunk_document"])
        assert len(stages["core_concept"]["core"]) == -(-3 * chunks // 10)
        assert index.retrieve(QUESTION, budget=900).text


def test_a_concept_is_shown_with_its_neighbours_and_units(read: Path, unread: Path, tmp_path: Path) -> None:
    with Index.open(read) as index:
        stages = index.inspect.arrays()
        words, concepts, graph = stages["words"], stages["concepts"], stages["concept_graph"]
        vocabulary = unpack(words["vocabulary_blob"], words["vocabulary_offsets"])
        names = [vocabulary[word] for word in concepts["concept_word"].tolist()]
        ends = graph["edges_indptr"].tolist()
        most = max(range(len(names)), key=lambda concept: ends[concept + 1] - ends[concept])
        found = index.inspect.node(names[most].upper(), "concept").to_json()
        row = range(ends[most], ends[most + 1])
        edges = {names[graph["edges_indices"][at]]: float(graph["edge_weight"][at]) for at in row}
        assert {near["name"]: near["weight"] for near in found["neighbours"]} == edges
        weights = [near["weight"] for near in found["neighbours"]]
        assert weights == sorted(weights, reverse=True) != []
        rows = np.split(
            concepts["chunk_concepts_indices"], concepts["chunk_concepts_indptr"][1:-1].astype(int)
        )
        assert found["chunks"] == tuple(chunk for chunk, row in enumerate(rows) if most in row.tolist())
        assert found["rank"] == stages["core_concept"]["concept_rank"][most]
        assert all(names[most] in f"{unit['title']} {unit['text']}".casefold() for unit in found["units"])
        assert index.inspect.kinds == ("entity", "concept")
        assert index.inspect.node("Fram", "entity").to_json()["schema"] == "ketrag/entity/1"
        assert index.inspect.node("Fram", "concept").to_json()["schema"] == "ketrag/concept/1"
        assert index.inspect.node("Fram") == index.inspect.node("Fram", "entity")
    done = ketrag("graph", "FRAM", "-i", str(read), "--kind", "concept", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.startswith("fram (concept): ")
    with Index.open(unread) as index:
        assert index.inspect.node("Fram").to_json()["rank"] is None  # nothing was chosen
        with pytest.raises(InputError, match="no concept 'fraam'") as wrong:
            index.inspect.node("fraam")
        assert "fram" in str(wrong.value.hint)
        with pytest.raises(ModeUnavailable, match="kind 'entity'"):
            index.inspect.entity("Fram")
