"""Concepts, their graph, and the choice of chunks against their oracles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import concepts as plain
from tests.support import all_kernels as kernels

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.text import pack

Csr = tuple[np.ndarray, np.ndarray]
WORDS = ["a", "aa", "b", "bb", "ccc", "dd", "é", "中", "中文", "zz"]


def csr(rows: list[list[int]]) -> Csr:
    ends = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    return ends, np.array([x for row in rows for x in row], np.uint32)


def rows_of(found: Csr) -> list[list[int]]:
    return [found[1][a:b].tolist() for a, b in pairwise(found[0].tolist())]


def rows_below(limit: int, most: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.sets(st.integers(0, limit - 1), max_size=limit).map(sorted), max_size=most)


def unit_vectors(seed: int, count: int, distinct: int = 4) -> np.ndarray:
    """Vectors of which several are equal, so that cosines tie."""
    random = np.random.default_rng(seed)
    base = random.standard_normal((max(distinct, 1), 5))
    made = base[random.integers(0, len(base), count)] if count else np.zeros((0, 5))
    return (made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)).astype(np.float32)


@given(
    st.lists(st.dictionaries(st.sampled_from(WORDS), st.integers(1, 4)), max_size=9),
    st.integers(1, 6),
)
def test_concepts_are_the_best_words_of_each_chunk(chunks: list[dict[str, int]], most: int) -> None:
    vocabulary = sorted(WORDS, key=str.encode)
    rows = [sorted(vocabulary.index(word) for word in chunk) for chunk in chunks]
    counts = [chunk[vocabulary[word]] for chunk, row in zip(chunks, rows, strict=True) for word in row]
    options: dict[str, Any] = {"most": most}

    def found(threads: int) -> tuple[list[str], list[list[str]]]:
        packed = pack(vocabulary)
        counted = np.array(counts, np.uint32)
        words, named = kernels.concepts(csr(rows), counted, packed, threads=threads, **options)
        names = [vocabulary[word] for word in words.tolist()]
        return names, [[names[concept] for concept in row] for row in rows_of(named)]

    assert found(1) == plain.concepts(chunks, **options)
    assert found(2) == found(1)


@given(rows_below(9, 12), st.integers(0, 99), st.integers(0, 4), st.sampled_from([-1.0, 0.0, 0.4, 0.65, 1.0]))
def test_the_graph_joins_what_meets_and_is_close(
    rows: list[list[int]], seed: int, theta_co: int, theta_sem: float
) -> None:
    vectors = unit_vectors(seed, 9)
    one = _core.concept_graph(*csr(rows), vectors, theta_co=theta_co, theta_sem=theta_sem, threads=1)
    two = _core.concept_graph(*csr(rows), vectors, theta_co=theta_co, theta_sem=theta_sem, threads=3)
    assert [part.tobytes() for part in (*one[0], *one[1:4])] == [
        part.tobytes() for part in (*two[0], *two[1:4])
    ]
    want = plain.concept_graph(rows, vectors, theta_co, theta_sem)
    both = {**want, **{(b, a): edge for (a, b), edge in want.items()}}
    edges = [(a, b) for a, row in enumerate(rows_of(one[0])) for b in row]
    assert edges == sorted(both)
    for place, edge in enumerate(edges):
        shared, cosine, weight = both[edge]
        assert (one[1][place], one[2][place], one[3][place]) == (shared, np.float32(cosine), weight)


@given(
    rows_below(6, 14),
    st.lists(st.sampled_from([0.0, 0.1, 0.1 + 1e-15, 0.25, 2.0]), min_size=6, max_size=6),
    st.integers(0, 16),
)
def test_chunks_are_chosen_by_their_concepts(rows: list[list[int]], ranks: list[float], count: int) -> None:
    got = kernels.select_by_concepts(csr(rows), ranks, count)
    assert got.tolist() == plain.choose_chunks(rows, ranks, count)


def test_what_does_not_fit_is_refused() -> None:
    vectors = unit_vectors(1, 3)
    with pytest.raises(InputError, match="below"):
        _core.concept_graph(*csr([[3]]), vectors)
    with pytest.raises(InputError, match="not strictly ascending"):
        _core.concept_graph(*csr([[1, 0]]), vectors)
    with pytest.raises(InputError, match="threshold"):
        _core.concept_graph(*csr([[0, 1]]), vectors, theta_sem=float("nan"))
    with pytest.raises(InputError, match="rank 0"):
        _core.select_by_concepts(*csr([[0]]), np.array([np.nan]), 1)
    with pytest.raises(InputError, match="counts"):
        _core.concepts(*csr([[0]]), np.ones(2, np.uint32), pack(["a"]))


def test_a_million_concepts() -> None:
    """Half of the chunks stand twice: their concepts meet in two chunks, those of the others in one."""
    count, each = 1_000_000, 4
    first = np.arange(count, dtype=np.uint32)
    ids = np.concatenate([first, first[: count // 2]])
    rows = np.arange(0, len(ids) + 1, each, dtype=np.uint64), ids
    vectors = np.ones((count, 1), np.float32)
    edges, shared, _, weights, _ = _core.concept_graph(*rows, vectors, theta_co=2)
    joined = count // 2 * (each - 1)
    assert len(edges[1]) == len(shared) == joined
    assert set(shared.tolist()) == {2}
    assert set(weights.tolist()) == {1.0}
    ranks = _core.pagerank(*edges, weights)
    assert ranks.sum() == pytest.approx(1)
    chosen = _core.select_by_concepts(*rows, ranks, 10).tolist()
    assert chosen == list(range(10))  # the concepts that meet weigh more, and their ties fall to the first
