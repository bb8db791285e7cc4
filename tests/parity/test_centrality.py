"""How central nodes are, against the plain versions and networkx."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import centrality as plain
from tests.support.inner_kernels.centrality import betweenness, core_numbers
from tests.support.parts import part

from ketrag_fast.errors import Cancelled, InputError

Rows = list[list[int]]


def both_ways(n: int, pairs: list[tuple[int, int]]) -> Rows:
    rows: list[set[int]] = [set() for _ in range(n)]
    for a, b in pairs:
        if a != b:
            rows[a].add(b)
            rows[b].add(a)
    return [sorted(row) for row in rows]


def packed(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    return indptr, np.array([i for row in rows for i in row], np.uint32)


@st.composite
def undirected(draw: st.DrawFn) -> Rows:
    n = draw(st.integers(1, 14))
    node = st.integers(0, n - 1)
    return both_ways(n, draw(st.lists(st.tuples(node, node), max_size=50)))


@given(undirected())
def test_core_numbers_by_their_definition(rows: Rows) -> None:
    assert core_numbers(*packed(rows)).tolist() == plain.core_numbers(rows)


def test_core_numbers_of_a_larger_graph_are_those_of_networkx() -> None:
    networkx = part("networkx", "checks")
    graph = networkx.barabasi_albert_graph(3000, 4, seed=1)
    graph.add_edges_from(networkx.gnm_random_graph(500, 9000, seed=2).edges)
    rows = both_ways(graph.number_of_nodes(), list(graph.edges))
    want = networkx.core_number(graph)
    assert core_numbers(*packed(rows)).tolist() == [want[i] for i in range(len(rows))]


BROKEN = [
    (([[1], []]), "the edge from 0 to 1 has none back"),
    (([[], [0]]), "the edge from 1 to 0 has none back"),
    (([[0]]), "edge to itself"),
    (([[2, 1], [0], [0]]), "not strictly ascending"),
    (([[1, 1], [0, 0]]), "not strictly ascending"),
    (([[7]]), "not below"),
]


@pytest.mark.parametrize(("rows", "word"), BROKEN)
def test_a_graph_that_is_not_undirected_is_named(rows: Rows, word: str) -> None:
    with pytest.raises(InputError, match=word):
        core_numbers(*packed(rows))
    with pytest.raises(InputError, match=word):
        betweenness(*packed(rows), [])


def test_an_empty_graph_and_a_lone_node() -> None:
    assert core_numbers([0], []).tolist() == []
    assert core_numbers([0, 0], []).tolist() == [0]
    assert core_numbers([0], []).dtype == np.int64


def test_core_numbers_can_be_stopped() -> None:
    n = 2_000_000
    ring = np.random.default_rng(1).permutation(n)  # neighbours lie far apart, which takes its time
    indices = np.empty((n, 2), np.int64)
    indices[ring, 0], indices[ring, 1] = np.roll(ring, 1), np.roll(ring, -1)
    indices.sort(axis=1)
    with pytest.raises(Cancelled):
        core_numbers(np.arange(0, 2 * n + 1, 2), indices.ravel(), report=lambda done, total: False)


@given(undirected(), st.lists(st.integers(0, 13), max_size=4))
def test_betweenness_by_its_definition(rows: Rows, pivots: list[int]) -> None:
    pivots = [pivot % len(rows) for pivot in pivots]
    got = betweenness(*packed(rows), pivots)
    np.testing.assert_allclose(got, plain.betweenness(rows, pivots), atol=1e-12)


def test_betweenness_from_all_nodes_is_twice_that_of_networkx() -> None:
    networkx = part("networkx", "checks")
    graph = networkx.barabasi_albert_graph(300, 2, seed=4)
    rows = both_ways(300, list(graph.edges))
    want = networkx.betweenness_centrality(graph, normalized=False)
    got = betweenness(*packed(rows), range(300))
    np.testing.assert_allclose(got, [2 * want[i] for i in range(300)], rtol=1e-12)


def test_betweenness_does_not_depend_on_the_threads() -> None:
    random = np.random.default_rng(3)
    rows = both_ways(20_000, [(int(a), int(b)) for a, b in random.integers(0, 20_000, (60_000, 2))])
    pivots = random.integers(0, 20_000, 7)
    one = betweenness(*packed(rows), pivots, threads=1)
    assert one.max() > 0
    assert all(one.tobytes() == betweenness(*packed(rows), pivots, threads=t).tobytes() for t in (2, 3, 9))


def test_a_pivot_that_there_is_not_is_named() -> None:
    for wrong in (2, 2**32, -1, 0.5):
        with pytest.raises(InputError, match="pivots"):
            betweenness(*packed([[1], [0]]), [wrong])
