"""PageRank and core selection against their oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pagerank as plain
from tests.oracles import select as plain_select
from tests.support import all_kernels as kernels
from tests.support.parts import part

from ketrag_fast.errors import InputError


@st.composite
def dense(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(1, 12))
    cells = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.25, 7.5])
    return np.array(draw(st.lists(st.lists(cells, min_size=n, max_size=n), min_size=n, max_size=n)))


def rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    source, target = np.nonzero(matrix)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(matrix)))])
    return indptr, target, matrix[source, target]


@given(dense(), st.floats(0.05, 1.0), st.integers(0, 11) | st.none())
def test_pagerank_is_the_dense_one(matrix: np.ndarray, teleport: float, seed: int | None) -> None:
    restart = None if seed is None else np.eye(len(matrix))[seed % len(matrix)] * 3
    got = kernels.pagerank(*rows(matrix), restart=restart, teleport=teleport)
    np.testing.assert_allclose(got, plain.pagerank(matrix, restart, teleport=teleport), atol=1e-12)
    two = kernels.pagerank(*rows(matrix), restart=restart, teleport=teleport, threads=2)
    assert got.tobytes() == two.tobytes()


@given(dense(), st.integers(0, 5), st.booleans())
def test_steps_and_the_lazy_walk(matrix: np.ndarray, steps: int, lazy: bool) -> None:
    got = kernels.pagerank(*rows(matrix), teleport=0.5, steps=steps, lazy=lazy)
    np.testing.assert_allclose(got, plain.pagerank(matrix, teleport=0.5, steps=steps, lazy=lazy), atol=1e-14)


def test_as_networkx_stops_it() -> None:
    networkx = part("networkx", "checks")
    part("scipy", "checks")
    graph = networkx.gnm_random_graph(60, 90, seed=3)
    matrix = networkx.to_numpy_array(graph)
    want = networkx.pagerank(graph, alpha=0.85)
    got = kernels.pagerank(*rows(matrix), until="networkx")
    np.testing.assert_allclose(got, [want[i] for i in range(60)], rtol=1e-13)
    assert np.abs(got - kernels.pagerank(*rows(matrix))).max() > 1e-9


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"indptr": [0, 1], "indices": [3]}, "not below"),
        ({"indptr": [1, 1], "indices": [0]}, "indptr"),
        ({"indptr": [], "indices": []}, "indptr"),
        ({"indptr": [0, 1], "indices": [-1]}, "indices"),
        ({"indptr": [0, 1], "indices": [0.5]}, "integers"),
        ({"indptr": [[0, 1]], "indices": [0]}, "shape"),
        ({"indptr": [0, 1], "indices": [0], "weights": [np.nan]}, "weights"),
        ({"indptr": [0, 1], "indices": [0], "restart": [1.0, 2.0]}, "restart"),
        ({"indptr": [0, 1], "indices": [0], "teleport": 0.0}, "teleport"),
        ({"indptr": [0, 1], "indices": [0], "until": "never"}, "until"),
        ({"indptr": [0, 1], "indices": [0], "lazy": True}, "lazy"),
    ],
)
def test_bad_graphs_are_named(arguments: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        kernels.pagerank(**arguments)


def test_core_counts() -> None:
    """90 #5."""
    cases = {(7, 0.8): 6, (1, 0.8): 1, (100, 0.29): 29, (3, 0.0): 0}
    for (n, ratio), want in cases.items():
        assert kernels.core_count(n, ratio) == plain_select.core_count(n, ratio) == want
    with pytest.raises(InputError, match="ratio"):
        kernels.core_count(3, 1.5)


@given(st.lists(st.sampled_from([0.25, 0.25 + 1e-14, 0.5, 1e-3, 0.0])), st.integers(0, 20))
def test_ranked_choice(scores: list[float], count: int) -> None:
    assert kernels.select_ranked(scores, count).tolist() == plain_select.select_ranked(scores, count)


@given(st.integers(0, 80), st.integers(0, 90), st.integers(0, 2**64 - 1), st.text(max_size=9))
def test_seeded_choice(n: int, count: int, seed: int, stage: str) -> None:
    got = kernels.select_uniform(n, count, seed=seed, stage=stage).tolist()
    assert got == plain_select.select_uniform(n, count, seed, stage)


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="not a number"):
        kernels.select_ranked([0.5, float("nan")], 1)
