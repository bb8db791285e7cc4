"""Layout, communities, neighbourhoods and paths against their plain versions."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import drawing as plain

from ketrag_fast.errors import Cancelled, InputError
from ketrag_fast.kernels import drawing

Edges = list[tuple[int, int, float]]


@st.composite
def graphs(draw: st.DrawFn, most: int = 30) -> tuple[int, Edges]:
    nodes = draw(st.integers(1, most))
    ids = st.integers(0, nodes - 1)
    weights = st.sampled_from([1.0, 1.0, 2.0, 3.0, 0.25])
    return nodes, draw(st.lists(st.tuples(ids, ids, weights), max_size=3 * most))


def built(nodes: int, edges: Edges) -> drawing.Weighted:
    sources, targets, weights = zip(*edges, strict=True) if edges else ((), (), ())
    return drawing.weighted_graph(nodes, sources, targets, weights)


def random_graph(nodes: int, edges: int, seed: int = 1) -> drawing.Weighted:
    random = np.random.default_rng(seed)
    ends = random.integers(0, nodes, (2, edges))
    return drawing.weighted_graph(nodes, *ends, random.integers(1, 5, edges).astype(float))


@given(graphs())
def test_weighted_graph_is_the_plain_one(graph: tuple[int, Edges]) -> None:
    got = built(*graph)
    want = plain.weighted(*graph)
    assert np.diff(got.indptr).tolist() == [len(row) for row in want]
    assert got.indices.tolist() == [to for row in want for to in row]
    assert got.weights.tolist() == [weight for row in want for weight in row.values()]


@given(graphs(), st.floats(0.3, 3))
def test_communities_are_the_plain_ones(graph: tuple[int, Edges], resolution: float) -> None:
    got = drawing.communities(built(*graph), resolution=resolution)
    assert got.tolist() == plain.communities(plain.weighted(*graph), resolution)


@given(graphs(), st.data())
def test_neighbourhood_is_the_plain_one(graph: tuple[int, Edges], data: st.DataObject) -> None:
    ids = st.integers(0, graph[0] - 1)
    seeds, hidden = data.draw(st.lists(ids, max_size=4)), data.draw(st.sets(ids, max_size=5))
    limit = data.draw(st.integers(0, graph[0] + 1))
    marks = [node in hidden for node in range(graph[0])]
    got = drawing.neighbourhood(built(*graph), seeds, limit, hidden=marks)
    want = plain.neighbourhood(plain.weighted(*graph), seeds, limit, hidden)
    assert list(zip(*(column.tolist() for column in got), strict=True)) == want


@given(graphs(), st.data())
def test_shortest_path_is_the_plain_one(graph: tuple[int, Edges], data: st.DataObject) -> None:
    ids = st.integers(0, graph[0] - 1)
    start, end = data.draw(ids), data.draw(ids)
    got = drawing.shortest_path(built(*graph), start, end).tolist()
    assert got == plain.shortest_path(plain.weighted(*graph), start, end)


@given(graphs(), st.data())
def test_induced_edges_are_those_of_all_pairs(graph: tuple[int, Edges], data: st.DataObject) -> None:
    nodes = data.draw(st.lists(st.integers(0, graph[0] - 1), unique=True))
    most = data.draw(st.integers(0, 20))
    rows = plain.weighted(*graph)
    pairs = [(a, b) for b in range(len(nodes)) for a in range(b) if nodes[b] in rows[nodes[a]]]
    weight = {(a, b): rows[nodes[a]][nodes[b]] for a, b in pairs}
    heaviest = sorted(sorted(pairs, key=lambda pair: (-weight[pair], pair))[:most])
    got = drawing.induced_edges(built(*graph), nodes, most)
    assert list(zip(got.sources.tolist(), got.targets.tolist(), strict=True)) == heaviest
    assert got.weights.tolist() == [weight[pair] for pair in heaviest]
    assert got.total == len(pairs)


@settings(max_examples=25)
@given(graphs(), st.integers(0, 2**64 - 1))
def test_exact_layout_is_the_plain_one(graph: tuple[int, Edges], seed: int) -> None:
    # Few steps: rounding differences grow with each step where a node is pushed both ways with equal force.
    got = drawing.layout(built(*graph), steps=3, theta=0, seed=seed)
    np.testing.assert_allclose(got, plain.layout(plain.weighted(*graph), 3, seed), atol=1e-6)


def test_exact_layout_on_several_levels_is_the_plain_one() -> None:
    random = np.random.default_rng(3)
    edges = [(int(random.integers(0, node)), node, 1.0) for node in range(1, 320)]
    edges += [(0, node, 2.0) for node in range(200, 300)]
    want = plain.layout(plain.weighted(330, edges), 2, 7)  # ten nodes have no edge
    np.testing.assert_allclose(drawing.layout(built(330, edges), steps=2, theta=0, seed=7), want, atol=1e-6)


def test_approximate_layout_keeps_neighbours_as_close_as_the_exact_one() -> None:
    graph = random_graph(1500, 2000)
    owner = np.repeat(np.arange(1500), np.diff(graph.indptr.astype(int)))

    def length(theta: float) -> float:
        xy = drawing.layout(graph, theta=theta)
        return float(np.linalg.norm(xy[owner] - xy[graph.indices], axis=1).mean() / xy.std())

    assert length(1.1) == pytest.approx(length(0), rel=0.1)


def test_the_same_bits_on_any_number_of_threads() -> None:
    graph = random_graph(5000, 9000)
    want = drawing.layout(graph, threads=1).tobytes()
    assert all(drawing.layout(graph, threads=threads).tobytes() == want for threads in (2, 3, 8))
    assert drawing.layout(graph, threads=1, seed=7).tobytes() != want


def test_a_layout_can_be_stopped() -> None:
    graph = random_graph(50_000, 100_000)
    begin = time.monotonic()
    with pytest.raises(Cancelled):
        drawing.layout(graph, steps=100_000, report=lambda done, total: False)
    assert time.monotonic() - begin < 60  # all steps take an hour


def test_hubs_lone_nodes_and_nothing() -> None:
    hub = drawing.weighted_graph(100_001, np.zeros(100_000, int), np.arange(1, 100_001), np.ones(100_000))
    assert drawing.neighbourhood(hub, [5], 4).nodes.tolist() == [5, 0, 1, 2]
    assert len(set(drawing.communities(hub).tolist())) == 1
    empty = drawing.weighted_graph(0, [], [], [])
    assert drawing.layout(empty).shape == (0, 2)
    assert drawing.communities(empty).tolist() == []
    assert drawing.layout(drawing.weighted_graph(1, [], [], [])).tolist() == [[0, 0]]


def test_wrong_arguments_are_refused() -> None:
    graph = random_graph(10, 20)
    one_way = drawing.Weighted(np.array([0, 1, 1], np.uint64), np.array([1], np.uint32), np.ones(1))
    for call in (drawing.layout, drawing.communities):
        with pytest.raises(InputError, match="none back"):
            call(one_way)
    for call in (
        lambda: drawing.layout(graph, theta=-1),
        lambda: drawing.communities(graph, resolution=0),
        lambda: drawing.neighbourhood(graph, [10], 3),
        lambda: drawing.neighbourhood(graph, [1], 3, hidden=[True]),
        lambda: drawing.induced_edges(graph, [1, 1]),
        lambda: drawing.shortest_path(graph, 0, 10),
        lambda: drawing.weighted_graph(2, [0], [2], [1]),
        lambda: drawing.weighted_graph(2, [0], [1], [0]),
        lambda: drawing.weighted_graph(2, [0], [1, 1], [1]),
    ):
        with pytest.raises(InputError):
            call()
