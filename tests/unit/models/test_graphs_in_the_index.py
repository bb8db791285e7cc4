"""hnswlib inside an index: stored, checked, opened, asked, and done without, over brought vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.base.config.shared import LARGE
from ketrag_fast.base.installed import install_command
from ketrag_fast.building import reports
from ketrag_fast.errors import BackendMissing, Cancelled, IndexDamaged
from ketrag_fast.kernels.text import unpack
from ketrag_fast.models import ann
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Document
from tests.support.vector_files import write_vectors

COUNT, QUESTIONS = 600, 40
GRAPHS = ("unit_search", "keyword_search")

pytestmark = pytest.mark.usefixtures("hnswlib")


def texts() -> list[str]:
    """A passage is one sentence of words that few others have."""
    return [f"The w{n} of the k{n % 150} is a g{n % 7}." for n in range(COUNT)]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = np.random.Generator(np.random.PCG64(3))
    centres = draw.standard_normal((30, 32))
    rows = centres[np.arange(COUNT + QUESTIONS) % 30] + 0.7 * draw.standard_normal((COUNT + QUESTIONS, 32))
    folder = tmp_path_factory.mktemp("brought")
    write_vectors(folder, [*texts(), *(f"question {n}" for n in range(QUESTIONS))], rows.astype(np.float32))
    return folder


Build = Callable[..., Index]


@pytest.fixture
def build(vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    def make(name: str = "i", large: int = LARGE, **settings: Any) -> Index:
        for module in (ann, reports):
            monkeypatch.setattr(module, "LARGE", large)
        documents = [Document(f"d{n}", text, "", {"n": n}) for n, text in enumerate(texts())]
        asked = Settings(embedder=f"vectors:{vectors}", threads=2, modes="all", **settings)
        return Index.build(documents, tmp_path / name, settings=asked)

    return make


def asked() -> list[str]:
    return [f"question {n}" for n in range(QUESTIONS)]


def test_it_is_asked_above_the_threshold_and_finds_what_the_scan_finds(build: Build) -> None:
    with build("scan", ann="exact") as scan, build("graph", large=COUNT) as graph:
        assert scan.stats()["search"]["units"]["kind"] == "exact"
        facts = graph.stats()["search"]["units"]
        assert facts["kind"] == "hnsw" and facts["recall"] >= 0.99 and facts["count"] == COUNT
        assert graph.stats()["search"]["keywords"]["kind"] == "hnsw"
        for mode in ("text", "keyword", "fused", "knn", "walk"):
            one = scan.retrieve_many(asked(), mode=mode, budget=400)
            two = graph.retrieve_many(asked(), mode=mode, budget=400)
            same = [a.text == b.text for a, b in zip(one, two, strict=True)]
            assert np.mean(same) >= (0.9 if mode in ("text", "keyword") else 1.0), mode
            alone = [graph.retrieve(q, mode=mode, budget=400).text for q in asked()[:5]]
            assert alone == [context.text for context in two[:5]]
    with build("below", large=COUNT + 1000) as below:
        assert below.stats()["search"]["units"]["kind"] == "exact"


def test_the_graph_really_answers(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that proposes one passage gets that passage first, whatever the scan would say."""
    with build(ann="hnsw") as index:
        sent = np.tile(np.arange(200, 328, dtype=np.uint32), (1, 1))
        monkeypatch.setattr(ann.StoredGraph, "candidates", lambda *_: sent)
        units = {p.unit for p in index.retrieve("question 1", mode="text", budget=300).passages}
        assert units and units <= set(range(200, 328))


def test_a_budget_that_asks_for_more_than_the_graph_can_tell_is_scanned(build: Build) -> None:
    with build("scan", ann="exact") as scan, build("graph", ann="hnsw") as graph:
        for budget in (9_000, 10**6):
            for mode in ("text", "keyword"):
                one, two = (index.retrieve("question 3", mode=mode, budget=budget) for index in (scan, graph))
                assert one.text == two.text and len(one.passages) > 128


def test_with_a_filter_every_answer_is_exact(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the graph: its proposals would be used up by what does not fit."""
    with build("scan", ann="exact") as scan, build("graph", ann="hnsw") as graph:
        monkeypatch.setattr(ann.StoredGraph, "candidates", lambda *_: pytest.fail("the graph was asked"))
        for given, least in (("n<540", 100), ("n<60", 20), ("n=7", 1)):
            for mode in ("text", "keyword", "knn"):
                one = scan.retrieve_many(asked()[:9], mode=mode, budget=400, filter=given)
                two = graph.retrieve_many(asked()[:9], mode=mode, budget=400, filter=given)
                assert [a.text for a in one] == [b.text for b in two]
                assert all(a.passages and a.fitting and a.fitting >= least for a in one)


def test_equal_builds_give_equal_digests(build: Build) -> None:
    first = build("a", ann="hnsw").digest
    assert build("b", ann="hnsw").digest == first


def test_the_knn_graph_by_proposals_is_the_exact_one_but_for_few(build: Build, tmp_path: Path) -> None:
    build("scan", ann="exact", knn_k=6).close()
    build("graph", large=COUNT, knn_k=6).close()
    one, two = (open_current(Layout(tmp_path / name)).stages["knn"] for name in ("scan", "graph"))
    assert np.array_equal(one["lexical"], two["lexical"])
    assert two["semantic"].shape == one["semantic"].shape and two["semantic"].dtype == np.uint32
    assert np.mean(one["semantic"] == two["semantic"]) >= 0.98
    same = one["semantic"] == two["semantic"]
    assert np.array_equal(one["semantic_scores"][same], two["semantic_scores"][same])
    for row, (lexical, semantic) in enumerate(zip(two["lexical"], two["semantic"], strict=True)):
        assert row not in semantic and not set(lexical.tolist()) & set(semantic.tolist())


def test_a_changed_setting_of_the_graph_embeds_nothing_and_keeps_the_rest(build: Build) -> None:
    build(ann="exact").close()
    report = build(ann="hnsw").report
    assert report is not None
    ran = {stage.name for stage in report.stages if stage.how == "ran"}
    assert ran == {*GRAPHS, "knn"}
    assert report.usage is not None and report.usage.embedding_tokens == 0


def test_without_the_package_auto_scans_with_a_word(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    with build("with", ann="hnsw") as index:
        wanted = index.retrieve("question 1", mode="text", budget=400).text
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    monkeypatch.setattr(ann, "is_hnswlib_installed", lambda: False)
    with build("with", ann="hnsw") as reader:  # nothing to do, so nothing is needed
        context = reader.retrieve("question 1", mode="text", budget=400)
        assert context.text == wanted and "hnswlib is not installed" in context.warnings[0]
    auto = build("auto", large=COUNT)
    assert auto.report is not None and auto.stats()["search"]["units"]["kind"] == "exact"
    assert any(install_command("ann") in word for word in auto.report.warnings)
    with pytest.raises(BackendMissing):
        build("asked", ann="hnsw")
    monkeypatch.undo()  # once it is there, the same command makes the graphs: it is a part of the fingerprint
    again = build("auto", large=COUNT)
    assert again.report is not None and again.stats()["search"]["units"]["kind"] == "hnsw"
    ran = {stage.name for stage in again.report.stages if stage.how == "ran"}
    assert "unit_search" in ran and not ran & {"units", "words", "vectors"}


@pytest.mark.parametrize(("stage", "verify"), list(zip(GRAPHS, ("full", "sizes"), strict=True)))
def test_an_altered_graph_is_never_loaded(build: Build, tmp_path: Path, stage: str, verify: str) -> None:
    build(ann="hnsw").close()
    file = tmp_path / "i" / "gen-000001" / stage / "graph.bin"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    mode = "text" if stage == "unit_search" else "keyword"
    with (
        pytest.raises(IndexDamaged),
        Index.open(tmp_path / "i", settings=Settings(verify=verify)) as index,
    ):
        index.retrieve("question 1", mode=mode, budget=400)
    report = build(ann="hnsw").report  # it is made anew
    assert report is not None
    assert {s.name for s in report.stages if s.how == "ran"} >= {stage}
    with Index.open(tmp_path / "i") as index:
        assert index.retrieve("question 1", mode=mode, budget=400).passages


def test_a_stop_while_the_graph_is_built_leaves_nothing_behind(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(f"d{n}", text, "", {"n": n}) for n, text in enumerate(texts())]
    settings = Settings(embedder=f"vectors:{vectors}", ann="hnsw")
    with pytest.raises(Cancelled):
        Index.build(
            documents, tmp_path / "i", settings=settings, progress=lambda event: event.stage != "unit_search"
        )
    assert not [path for path in (tmp_path / "i" / "work").iterdir() if path.suffix == ".hnsw"]
    with Index.build(documents, tmp_path / "i", settings=settings) as index:
        assert index.stats()["search"]["units"]["kind"] == "hnsw"


def test_entities_have_a_graph_where_there_is_a_skeleton(tmp_path: Path) -> None:
    """Modes with tables find by it what the scan finds, and `ket` asks two graphs at once."""
    said = [f"Captain Ann{n} of Port{n % 50} sailed the Ship{n % 90} to Cape{n % 40}." for n in range(300)]
    documents = [Document(f"d{n}", text) for n, text in enumerate(said)]
    with Index.build(
        documents, tmp_path / "plain", settings=Settings(llm="heuristic", core_ratio=1.0)
    ) as plain:
        skeleton = plain.inspect.arrays()["skeleton"]
        columns = [
            unpack(skeleton[f"entity_{name}_blob"], skeleton[f"entity_{name}_offsets"])
            for name in ("name", "description")
        ]
    entities = [f"{name}:{text}" if text else name for name, text in zip(*columns, strict=True)]
    every = list(dict.fromkeys([*said, *entities, *asked()]))
    draw = np.random.Generator(np.random.PCG64(5))
    rows = (
        draw.standard_normal((len(every), 16))
        + 2 * draw.standard_normal((20, 16))[np.arange(len(every)) % 20]
    )
    write_vectors(tmp_path / "vectors", every, rows.astype(np.float32))
    common = {"embedder": f"vectors:{tmp_path / 'vectors'}", "llm": "heuristic", "core_ratio": 1.0}

    def make(name: str, **settings: Any) -> Index:
        return Index.build(documents, tmp_path / name, settings=Settings(**common, **settings))

    with make("scan", ann="exact") as scan, make("graph", ann="hnsw") as graph:
        assert scan.stats()["search"]["entities"]["kind"] == "exact"
        assert graph.stats()["search"]["entities"]["kind"] == "hnsw"
        assert graph.stats()["search"]["entities"]["count"] == len(entities) > 200
        for mode in ("skeleton", "ket"):
            one, two = (index.retrieve_many(asked(), mode=mode, budget=600) for index in (scan, graph))
            assert np.mean([a.text == b.text for a, b in zip(one, two, strict=True)]) >= 0.9, mode
            assert graph.retrieve(asked()[0], mode=mode, budget=600).text == two[0].text
