"""NodeRAG's stages and its search against the slow, plain form of `tests.oracles.noderag`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import noderag as slow
from tests.process import POLAR
from tests.support.inner_kernels.text import stop_words
from tests.support.rules import rules

from ketrag_fast import Index, Settings
from ketrag_fast.kernels.text import tokenise_many, unpack
from ketrag_fast.systems.papers.noderag import NodeRules
from ketrag_fast.systems.papers.noderag.graph import PIVOTS, Heterograph, symmetric
from ketrag_fast.systems.shared.rows import csr, strings

NAMES = st.sampled_from(["Fram", "fram ", "Maud", "Amundsen", "Roald  Amundsen", "ＭＡＵＤ", "", " "])
ENDS = st.sampled_from(["Fram", "MAUD", "Nansen", "Amundsen"])
ROWS = st.tuples(ENDS, st.sampled_from(["met", "sailed"]), ENDS)
UNITS = st.tuples(
    st.sampled_from(["a", "b", "c", "d"]), st.lists(NAMES, max_size=4), st.lists(ROWS, max_size=4)
)
KINDS = ("T", "S", "A", "H", "N", "O", "R")
QUESTIONS = (
    "Which ship did Amundsen sail to the Ross Ice Shelf, and who built her?",
    "Fram",
    "Who was Roald Amundsen, and when did Fridtjof Nansen win the Nobel Peace Prize in 1922?",
    "Who reached the Bay of Whales and the Barrier of Ice, and what did it cost?",
    "zzz qqq",
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(UNITS, max_size=4), max_size=5), st.booleans())
def test_the_graph_of_any_decompositions(chunks: list[list[Any]], weigh: bool) -> None:
    plain = slow.build([[slow.Unit(*unit) for unit in chunk] for chunk in chunks], count_repeats=weigh)
    fast = Heterograph(weigh=weigh)
    for number, chunk in enumerate(chunks):
        for text, names, rows in chunk:
            fast.add(number, text, names, rows)
    units, names = list(fast.units.ids), list(fast.entities.ids)
    kind = {name: [key for key, node in plain.nodes.items() if node.kind == name] for name in "SNR"}
    assert [plain.nodes[key].text for key in kind["S"]] == units
    assert [plain.nodes[key].text for key in kind["N"]] == names
    for own, keys in ((fast.units, kind["S"]), (fast.entities, kind["N"]), (fast.relations, kind["R"])):
        assert own.weights == [plain.nodes[key].weight for key in keys]
        assert own.chunks == [sorted(plain.nodes[key].origins) for key in keys]
    told = [list(dict.fromkeys(plain.nodes[key].text.split("\t"))) for key in kind["R"]]
    assert [list(texts) for texts in fast.told] == told
    for unit, key in enumerate(kind["S"]):
        for entity, other in enumerate(kind["N"]):
            assert fast.unit_entity[unit, entity] == plain.edge(key, other)
    for number, key in enumerate(kind["R"]):
        ends = {entity for entity, other in enumerate(kind["N"]) if plain.edge(other, key)}
        assert set(fast.ends[number]) == ends


def test_rows_of_undirected_edges() -> None:
    first, second, counts = (np.array(row, np.int64) for row in ([2, 0, 0, 1], [0, 2, 1, 1], [1, 4, 2, 9]))
    (indptr, indices), summed = symmetric(first, second, counts, 4)
    assert indptr.tolist() == [0, 2, 3, 4, 4]
    assert (indices.tolist(), summed.tolist()) == ([1, 2, 0, 0], [2, 5, 2, 5])
    empty = np.zeros(0, np.int64)
    assert symmetric(empty, empty, empty, 0)[0][0].tolist() == [0]


@pytest.fixture(scope="module", params=["noderag", "noderag:reference"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    own = Settings(system=request.param, chunk_tokens=150)
    return Index.build(POLAR / "articles", tmp_path_factory.mktemp("nodes") / "ix", settings=own)


def graph_of(index: Index) -> slow.Graph:
    """The whole graph of an index as the slow form has it; node k is (its kind, "k")."""
    stages = index._opened.generation.stages
    kinds = kinds_of(stages)
    graph = slow.Graph.of_rows(
        *csr(stages["noderag_edges"], "edges"), stages["noderag_edges"]["edge_count"], kinds
    )
    first = {kind: kinds.index(kind) if kind in kinds else 0 for kind in KINDS}
    keys = list(graph.nodes)
    for number, entity in enumerate(stages["noderag_attributes"]["attribute_entity"].tolist()):
        graph.nodes[keys[first["N"] + entity]].attributes.append(keys[first["A"] + number])
    indptr, indices = csr(stages["noderag_elements"], "title_elements")
    for title in range(len(indptr) - 1):
        row = indices[int(indptr[title]) : int(indptr[title + 1])].tolist()
        graph.nodes[keys[first["O"] + title]].related.extend(keys[first["H"] + number] for number in row)
    for kind, stage, name in (("N", "noderag_graph", "node_entity"), ("O", "noderag_elements", "title")):
        for number, text in enumerate(unpack(*strings(stages[stage], name))):
            graph.nodes[keys[first[kind] + number]].text = text
    return graph


def kinds_of(stages: Any) -> list[str]:
    graph, elements = stages["noderag_graph"], stages["noderag_elements"]
    counts = (
        len(stages["units"]["chunk_document"]),
        len(graph["unit_weight"]),
        len(stages["noderag_attributes"]["attribute_entity"]),
        len(elements["element_offsets"]) - 1,
        len(graph["entity_weight"]),
        len(elements["title_offsets"]) - 1,
        len(graph["relation_weight"]),
    )
    return [kind for kind, count in zip(KINDS, counts, strict=True) for _ in range(count)]


def words(text: str) -> list[str]:
    return unpack(*tokenise_many([text], "none")[0])


def test_important_entities(index: Index) -> None:
    from ketrag_fast import _core

    stages = index._opened.generation.stages
    graph, found = stages["noderag_graph"], stages["noderag_importance"]
    s, n = len(graph["unit_weight"]), len(graph["entity_weight"])
    indptr, indices = csr(graph, "mentions")
    kinds = ["S"] * s + ["N"] * n + ["R"] * len(graph["relation_weight"])
    plain = slow.Graph.of_rows(indptr, indices, None, kinds)
    keys = list(plain.nodes)
    for number, weight in enumerate(graph["entity_weight"].tolist()):
        plain.nodes[keys[s + number]].weight = weight
    pivots = np.sort(_core.select_uniform(len(keys), PIVOTS, 42, "betweenness")).tolist()
    nearest = index._opened.settings.of(NodeRules).entity_rounding == "nearest"
    wanted = slow.important(plain, [keys[p] for p in pivots], nearest=nearest)
    assert [keys[s + number] for number in found["important"].tolist()] == wanted
    assert wanted
    between = slow.betweenness(plain, [keys[p] for p in pivots])
    np.testing.assert_allclose(found["betweenness"], [between[key] for key in keys], rtol=1e-9, atol=1e-9)


def test_weights_of_edges(index: Index) -> None:
    arrays = index._opened.generation.stages["noderag_edges"]
    weights = slow.effective_weights(graph_of(index))
    plain = [
        weight for row in weights.values() for _, weight in sorted(row.items(), key=lambda e: int(e[0][1]))
    ]
    np.testing.assert_array_equal(arrays["edge_weight"], plain)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("limits", "fill"),
    [
        ((10, 10, 10, 30, 10), "none"),
        ((10, 10, 10, 30, 10), "chunks"),
        ((3, 5, 2, 4, 1), "chunks"),
        ((0, 9, 9, 9, 9), "chunks"),
    ],
)
def test_what_a_question_finds(index: Index, question: str, limits: tuple[int, ...], fill: str) -> None:
    """Entry points, walk, cross nodes and the list, from the printed rows of a context without a limit."""
    hits, nodes, entities, relations, titles = limits
    lazy = index._opened.settings.of(NodeRules).node_walk == "lazy"
    names = ("node_hits", "cross_nodes", "cross_entities", "cross_relations", "cross_titles")
    opened = Index.open(index.path)
    graph, keys = graph_of(opened), []
    keys = list(graph.nodes)
    near = nearest(opened, question, hits)
    exact = slow.named(question, graph, tokens=words, stop_words=stop_words()[0])
    chances = slow.transition(slow.effective_weights(graph))
    scores = slow.walk(chances, slow.entry_weights([keys[k] for k in near], exact), lazy=lazy)
    # Scores are compared in steps of 1e-9, as all rankings are.
    order = slow.ranking({key: round(score, 9) for key, score in scores.items()})
    cross = slow.cross_nodes(
        graph, order, [keys[k] for k in near], names=entities, titles=titles, relations=relations,
        others=nodes,
    )  # fmt: skip
    wanted = [*slow.retrieved(graph, [keys[k] for k in near], cross), *cross.relations]
    if fill == "chunks":
        wanted += slow.fill(graph, order, wanted)
    with rules(**dict(zip(names, limits, strict=True)), node_fill=fill):
        context = opened.retrieve(question, mode="noderag", budget=1_000_000)
        printed = printed_nodes(opened, question)
    chunks = len(opened._opened.generation.stages["units"]["chunk_document"])
    assert printed == [int(key[1]) for key in wanted]
    assert len(context.passages) == len(wanted)
    for passage, key in zip(context.passages, wanted, strict=True):
        assert (passage.kind == "chunk") == (int(key[1]) < chunks)
        assert passage.score == pytest.approx(scores[key], abs=1e-12)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who sang Out Here on My Own?", ["OUT HERE ON MY OWN"]),
        ("Is it by The Who, or by Fram?", ["THE WHO", "FRAM"]),
        ("It was here.", []),
    ],
)
def test_a_single_stop_word_is_not_a_name_but_several_are(question: str, names: list[str]) -> None:
    unit = slow.Unit("a", ["It", "Fram", "Out Here on My Own", "The Who"], [])
    graph = slow.build([[unit]])
    found = slow.named(question, graph, tokens=words, stop_words=stop_words()[0])
    assert [graph.nodes[key].text for key in found] == names


def printed_nodes(index: Index, question: str) -> list[int]:
    """The nodes of a context in the order of the search; chunks by their units, which are whole chunks."""
    from ketrag_fast.query.modes import build_request, find_recipe

    opened = index._opened
    request = build_request(opened.settings, find_recipe("noderag"), [1_000_000])
    printed = opened.searcher.answer(request, question).contexts[0]
    nodes = printed.nodes
    return [unit if node == 2**32 - 1 else node for unit, node in zip(printed.units, nodes, strict=True)]


def nearest(index: Index, question: str, count: int) -> list[int]:
    from ketrag_fast.query.python_channels import fitted_vectors

    vectors = index._opened.generation.stages["noderag_vectors"]["vectors"].astype(np.float64)
    query = fitted_vectors(index._opened, [question])
    assert query is not None
    scores = np.round(vectors @ query[0].astype(np.float64), 9)
    if not query.any():
        return []
    return np.lexsort((np.arange(len(scores)), -scores))[:count].tolist()
