"""Edges between documents and the messages along them, beside the slow forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.oracles import cg_rag
from tests.support.inner_kernels.citations import citation_links, edge_alphas, pass_messages

from ketrag_fast.errors import InputError

Rng = np.random.Generator


def unit_vectors(rng: Rng, count: int, dimension: int) -> NDArray[np.float32]:
    made = rng.normal(size=(count, dimension))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def packed(rows: list[list[int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    ends = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    return ends, np.array([value for row in rows for value in row], np.uint32)


def drawn(seed: int) -> tuple[Rng, list[list[int]], list[list[int]], NDArray[np.float32]]:
    """Rows of edges without self loops, their kinds, and vectors."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 30))
    rows = []
    for text in range(count):
        others = [other for other in range(count) if other != text]
        rows.append(sorted(rng.permutation(others)[: rng.integers(0, 6)].tolist()))
    kinds = [[int(rng.integers(1, 16)) for _ in row] for row in rows]
    return rng, rows, kinds, unit_vectors(rng, count, 8)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    layers=st.integers(0, 4),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]),
    wanted=st.sampled_from([0, 1, 3, 7, 11, 15]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_one_number_a_text_is_as_good_as_a_vector(
    seed: int, layers: int, epsilon: float, wanted: int, share: float
) -> None:
    rng, rows, kinds, vectors = drawn(seed)
    question = rng.normal(size=8)
    matches = (rng.random(len(rows)) * (rng.random(len(rows)) < 0.5)).tolist()
    weight = cg_rag.weights(matches, epsilon)
    alpha = cg_rag.alphas(rows, vectors)
    start = [float(np.asarray(vector, np.float64) @ question) for vector in vectors]
    more = {"layers": layers, "wanted": wanted, "share": share}
    closed = cg_rag.messages(rows, kinds, alpha, weight, start, **more)
    whole = cg_rag.passed_vectors(rows, kinds, alpha, weight, vectors.astype(np.float64), question, **more)
    assert np.allclose(closed, whole, atol=1e-12)
    edges = packed(rows)
    fast_alpha = edge_alphas(edges, vectors)
    assert np.allclose(fast_alpha, [a for row in alpha for a in row], atol=1e-7)
    fast = pass_messages(edges, packed(kinds)[1], fast_alpha, weight, start, **more)
    assert np.allclose(fast, closed, atol=1e-6)


def test_without_neighbours() -> None:
    """The similarity is multiplied by the words."""
    none = packed([[], [], []])
    empty = np.zeros(0, np.uint8), np.zeros(0, np.float32)
    x, weight = [0.5, -0.25, 0.125], cg_rag.weights([2.0, 0.0, 1.0], 0.0)
    for layers in (0, 1, 2):
        found = pass_messages(none, *empty, weight, x, layers=layers, share=1.0)
        assert found.tolist() == [0.5, 0.0, 0.0625]
    assert cg_rag.weights([0.0, 0.0], 0.1) == [1.0, 1.0]  # no word is known: vectors alone
    assert cg_rag.weights([], 0.1) == []


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), most=st.integers(0, 4), threads=st.integers(1, 3))
def test_links_between_documents(seed: int, most: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, size=int(rng.integers(1, 8)))
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    count = int(first[-1])
    vectors = unit_vectors(rng, count, 4) if count else np.zeros((0, 4), np.float32)
    words = [{int(w): float(rng.random()) for w in sorted(rng.permutation(9)[:3])} for _ in range(count)]
    senders = [
        sorted({int(s) for s in rng.integers(0, len(sizes), size=int(rng.integers(0, 4)))}) for _ in sizes
    ]
    rows, relevance = cg_rag.links(first.tolist(), vectors, words, senders, most)
    weights = [value for row in words for value in row.values()]
    got = citation_links(
        first,
        vectors,
        packed([list(row) for row in words]),
        9,
        weights,
        packed(senders),
        most,
        threads=threads,
    )
    want = packed(rows)
    assert np.array_equal(got.edges.indptr, want[0])
    assert np.array_equal(got.edges.indices, want[1])
    assert np.allclose(got.relevance, [value for row in relevance for value in row], atol=1e-9)
    dots = [float(vectors[a].astype(float) @ vectors[b]) for a, row in enumerate(rows) for b in row]
    assert np.allclose(got.near, dots, atol=1e-6)


def test_bad_arrays_are_refused() -> None:
    edges = packed([[1], [0]])
    ones = np.ones(2, np.float32)
    good = {"layers": 1, "share": 0.5}
    with pytest.raises(InputError, match="3 weights"):
        pass_messages(edges, [1, 1], ones, [1, 1, 1], [1, 1], **good)
    with pytest.raises(InputError, match=r"values\[1\]"):
        pass_messages(edges, [1, 1], ones, [1, 1], [1, np.nan], **good)
    with pytest.raises(InputError, match="share"):
        pass_messages(edges, [1, 1], ones, [1, 1], [1, 1], share=2)
    with pytest.raises(InputError, match="layers"):
        pass_messages(edges, [1, 1], ones, [1, 1], [1, 1], share=1, layers=10**9)
    with pytest.raises(InputError, match="not below"):
        edge_alphas((np.array([0, 1], np.uint64), np.array([1], np.uint32)), np.ones((1, 2), np.float32))
