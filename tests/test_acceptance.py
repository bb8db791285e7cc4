"""The acceptance list that pins the specification, in its order, through the public kernels and Index.

Entry 13, that no retriever exceeds its budget, is a property test of its own: tests/property/test_budget.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.text import unpack
from ketrag_fast.lab.eval import metrics
from ketrag_fast.systems.noderag.graph import Heterograph
from ketrag_fast.systems.noderag.units import key_of
from tests.oracles import skeleton as folded
from tests.process import POLAR, environment
from tests.support import all_kernels as kernels
from tests.support.replies import packed_replies

NONE = 0xFFFFFFFF


def graph(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    return indptr, np.array([x for row in rows for x in row], np.uint32)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """The demo's articles as a graph of NodeRAG."""
    folder = tmp_path_factory.mktemp("nodes") / "index"
    settings = Settings(system="noderag", chunk_tokens=150, modes="bm25,noderag")
    with Index.build(POLAR / "articles", folder, settings=settings) as index:
        yield index


def test_01_two_steps_of_personalised_pagerank() -> None:
    rows = [[1, 2], [0], [0, 3], [2]]
    indptr, indices = graph(rows)
    p = np.array([0.5, 0.0, 0.25, 0.25])
    step = np.zeros((4, 4))
    for row, columns in enumerate(rows):
        step[row, columns] = 1 / len(columns)
    once, twice = step.T @ p, step.T @ step.T @ p
    true = kernels.personalised_pagerank(indptr, indices, p, teleport=0.5, steps=2)
    np.testing.assert_allclose(true, 0.5 * p + 0.25 * once + 0.25 * twice, atol=1e-12)
    lazy = kernels.pagerank(indptr, indices, restart=p, teleport=0.5, steps=2, lazy=True)
    np.testing.assert_allclose(lazy, 0.25 * p + 0.5 * once + 0.25 * twice, atol=1e-12)


def test_02_a_balanced_edge_weighs_one_part_of_its_fuller_end(nodes: Index) -> None:
    """Whatever was counted on the edge: the weights of a real graph, whose counts differ."""
    edges = nodes.inspect.arrays()["noderag_edges"]
    degrees = np.diff(edges["edges_indptr"].astype(np.int64))
    fuller = np.maximum(np.repeat(degrees, degrees), degrees[edges["edges_indices"]])
    assert edges["edge_count"].max() > edges["edge_count"].min() == 1
    assert len(np.unique(fuller)) > 10
    np.testing.assert_array_equal(edges["edge_weight"], 1.0 / fuller)


def test_03_messages_of_numbers_equal_the_products_of_messages_of_vectors() -> None:
    """s = q . (C + M (C + M C)) with M = share diag(1 / neighbours) alpha A and C = diag(weight) V, K = 2."""
    chance = np.random.default_rng(3)
    rows = [[1, 2], [0], [0, 1, 3], []]
    indptr, indices = graph(rows)
    values, question = chance.normal(size=(4, 5)), chance.normal(size=5)
    alphas, weights = chance.random(len(indices)), chance.random(4)
    once = np.zeros((4, 4))
    for row, (start, end) in enumerate(zip(indptr.tolist()[:-1], indptr.tolist()[1:], strict=True)):
        for at in range(start, end):
            once[row, indices[at]] += 0.5 * np.float32(alphas[at]) / (end - start)
    own = weights[:, None] * values
    kinds = np.ones(len(indices), np.uint8)
    inputs = ((indptr, indices), kinds, alphas.astype(np.float32), weights, values @ question)
    found = kernels.pass_messages(*inputs, share=0.5, layers=2)
    np.testing.assert_allclose(found, (own + once @ (own + once @ own)) @ question, atol=1e-12)
    alone = kernels.pass_messages(*inputs, share=0.5, layers=1)[3]
    assert alone == pytest.approx(weights[3] * (values[3] @ question), abs=1e-15)


def test_04_pagerank_of_a_path_and_two_lonely_nodes() -> None:
    scores = kernels.pagerank(*graph([[1], [0], [], []]), teleport=0.15)
    np.testing.assert_allclose(scores, [0.4347826, 0.4347826, 0.0652174, 0.0652174], atol=1e-6)


@pytest.mark.parametrize(("n", "share", "count"), [(7, 0.8, 6), (1, 0.8, 1), (100, 0.29, 29), (3, 0, 0)])
def test_05_number_of_core_chunks(n: int, share: float, count: int) -> None:
    assert kernels.core_count(n, share) == count


def test_06_knn_graph_of_twins_and_of_everyone() -> None:
    twins = np.array([[1.0, 0.0], [1.0, 0.0]], np.float32)
    lexical, _ = kernels.cooccurrence_knn(*graph([[0, 1], [0, 1]]), 2, 1)
    semantic, _ = kernels.cosine_knn(twins, 1)
    indptr, indices = kernels.knn_graph(lexical, semantic)[:2]
    assert (indptr.tolist(), indices.tolist()) == ([0, 1, 2], [1, 0])
    n = 6
    vectors = np.random.default_rng(1).normal(size=(n, 4)).astype(np.float32)
    semantic, _ = kernels.cosine_knn(vectors, n)
    empty = np.full((n, 0), NONE, np.uint32)
    assert len(kernels.knn_graph(empty, semantic)[1]) == n * (n - 1)


def test_07_budget_of_the_text_channel() -> None:
    assert kernels.split_budget(12_000, 0.8) == (9600, 2400)


def test_08_cuts_keep_characters_whole() -> None:
    text = "北京是中国的首都，长城在北京附近。😀" * 40
    data = text.encode()
    for size in (1, 2, 3, 7, 50):
        spans = kernels.token_windows(text, size)
        pieces = [text[start:end] for start, end in spans]
        assert "".join(pieces) == text, size
        assert all("\ufffd" not in piece for piece in pieces)
        assert "\ufffd" not in kernels.truncate(text, size)
        assert data.startswith(kernels.truncate(text, size).encode())


def test_09_keyword_vector_is_the_plain_mean_of_its_sentences() -> None:
    sentences = np.array([[1.0, 0.0], [0.0, 3.0]], np.float32)
    means = kernels.keyword_means(graph([[0, 1]]), sentences)
    np.testing.assert_allclose(means, [[0.5, 1.5]])
    with pytest.raises(InputError):
        kernels.keyword_means(graph([[0, 2]]), sentences)


def test_10_dice() -> None:
    """Two concepts of 4 and 6 chunks that share 3: 0.6; of those that share 2: no edge."""
    alike = np.ones((2, 1), np.float32)
    for shared, weights in ((3, [0.6, 0.6]), (2, [])):
        rows = [[0, 1]] * shared + [[0]] * (4 - shared) + [[1]] * (6 - shared)
        ends = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
        ids = np.array([concept for row in rows for concept in row], np.uint32)
        assert kernels.concept_graph((ends, ids), alike).weights.tolist() == weights


def skeleton(chunks: list[list[tuple[str, str]]]) -> dict[str, np.ndarray]:
    """The folded skeleton of relations (source, target), chunk by chunk of one unit each."""
    replies = [
        folded.ChunkReply(chunk, [], [folded.FoldedRelation(a, b, "", 1.0) for a, b in pairs])
        for chunk, pairs in enumerate(chunks)
    ]
    texts = [f"unit {chunk}" for chunk in range(len(chunks))]
    ends = np.arange(len(chunks) + 1)
    return kernels.fold_skeleton(packed_replies(replies), ends, texts, np.zeros((len(texts), 2), np.uint32))


def test_11_order_of_relationships() -> None:
    """Those between two chosen entities first; the others by (links, rank); at most 10 for each."""
    joins = [("A", f"X{i}") for i in range(30)] + [("B", "X29"), ("X3", "Y"), ("A", "B")]
    found = kernels.local_search(skeleton([joins]), ["unit 0"], [3], [0, 31], 100_000)
    number = {pair: at for at, pair in enumerate(joins)}
    names = [("A", "B"), ("A", "X29"), ("B", "X29"), ("A", "X3")]
    arrays = skeleton([joins])
    entities = unpack(arrays["entity_name_blob"], arrays["entity_name_offsets"])
    assert [entities[0], entities[31]] == ["A", "B"]
    assert found.relations.tolist()[:4] == [number[pair] for pair in names]
    assert len(found.relations) == 1 + 2 * 10


def test_12_a_unit_of_two_entities_is_printed_once() -> None:
    arrays = skeleton([[("A", "B")], [("A", "C")]])
    found = kernels.local_search(arrays, ["unit 0", "unit 1"], [3, 3], [0, 1, 2], 100_000)
    assert sorted(found.sources.tolist()) == [0, 1]
    assert found.text.count("unit 0") == found.text.count("unit 1") == 1


def test_14_threads_and_the_order_of_rows() -> None:
    chance = np.random.default_rng(5)
    vectors = chance.normal(size=(300, 16)).astype(np.float32)
    one, many = (kernels.cosine_knn(vectors, 5, threads=threads) for threads in (1, 16))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, many, strict=True))
    order = chance.permutation(300)
    moved = kernels.cosine_knn(vectors[order], 5)[0]
    assert all(set(order[moved[new]]) == set(one[0][old]) for new, old in enumerate(order))


KEYS = """
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.noderag.graph import Heterograph, whole_graph
graph = Heterograph(weigh=True)
graph.add(0, "one", ["Paris"], [("Paris", "lies in", "France"), ("France", "has", "Paris")])
graph.add(1, "two", [], [("France", "rules", "PARIS")])
arrays = whole_graph(graph)
print(arrays["relation_ends"].tolist())
print(unpack(arrays["node_entity_blob"], arrays["node_entity_offsets"]))
"""


def test_15_a_relation_has_one_key_in_both_directions_and_in_every_process() -> None:
    outputs = []
    for seed in ("0", "1", "77"):
        variables = environment(PYTHONHASHSEED=seed)
        ran = subprocess.run(
            [sys.executable, "-c", KEYS], env=variables, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout)
    assert outputs[0].splitlines() == ["[[0, 1]]", "['PARIS', 'FRANCE']"]
    assert outputs[0] == outputs[1] == outputs[2]


def test_15_a_title_and_an_entity_of_one_name_are_two_nodes(nodes: Index) -> None:
    """Among the names that a question is matched with, some lead to an entity and to a title."""
    edges, entities = (
        nodes.inspect.arrays()["noderag_edges"],
        len(nodes.inspect.arrays()["noderag_graph"]["entity_weight"]),
    )
    total, relations = (
        len(edges["edges_indptr"]) - 1,
        len(nodes.inspect.arrays()["noderag_graph"]["relation_weight"]),
    )
    titles = len(nodes.inspect.arrays()["noderag_elements"]["title_offsets"]) - 1
    first_title = total - relations - titles
    ends = edges["name_nodes_indptr"].tolist()
    kinds = [
        {int(node) >= first_title for node in edges["name_nodes_indices"][start:end]}
        for start, end in pairwise(ends)
    ]
    assert {False, True} in kinds
    assert len(np.unique(edges["name_nodes_indices"])) == len(edges["name_nodes_indices"])
    assert len(edges["name_nodes_indices"]) <= entities + titles


def test_16_an_empty_term_matches_nothing(nodes: Index) -> None:
    """A question without a word enters the graph nowhere, and a name without a letter is no entity."""
    found = nodes.retrieve("?! ... --", mode="noderag")
    assert (found.text, found.reason, len(found.passages)) == ("", "no_match", 0)
    graph = Heterograph(weigh=True)
    graph.add(0, "one", ["", "  ", "Paris"], [("", "is", "Paris")])
    assert list(graph.entities.ids) == [key_of("Paris")]
    assert not graph.ends


def test_17_f1() -> None:
    assert metrics.f1("no", "yes") == 0
    assert metrics.f1("Insufficient information.", "Paris") == 0
    assert metrics.f1("yes it is", "yes") == 0.5


def test_18_coverage_counts_whole_tokens() -> None:
    assert not metrics.is_covered("they had a party", ["art"])
    assert metrics.is_covered("they had a party", ["art"], substring=True)


def test_19_round_trip_and_second_index(tmp_path: Path) -> None:
    built = Index.build(POLAR / "articles", tmp_path / "index")
    found = built.retrieve("Who built the Fram?")
    with Index.open(tmp_path / "index") as opened:
        again = opened.retrieve("Who built the Fram?")
        assert (again.text, list(again.passages)) == (found.text, list(found.passages))
    second = Index.build(POLAR / "articles", tmp_path / "index")
    assert second.report is not None
    assert not second.report.changed
    assert (second.generation, second.digest) == (built.generation, built.digest)


def test_19_a_citation_of_nothing_is_counted(tmp_path: Path) -> None:
    documents = [
        Document("1", "The Fram was a ship for the ice.", metadata={"cites": ["2", "9999"]}),
        Document("2", "Colin Archer drew rescue boats."),
    ]
    with Index.build(documents, tmp_path / "index", settings=Settings(system="cg-rag")) as index:
        counted = index.stats()["systems"]["cg-rag"]
    assert (counted["citations"], counted["unresolved_citations"]) == (1, 1)
    assert counted["unresolved"] == [{"document": "1", "citation": "9999"}]
