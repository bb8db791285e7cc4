"""Vector kernels against their plain versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.oracles import vectors as reference
from tests.support import all_kernels as kernels
from tests.support.effort import Report, is_stopped

from ketrag_fast import _core
from ketrag_fast.errors import InputError

LEVELS = _core.simd_levels()
NONE = 2**32 - 1


def awkward(seed: int, n: int, d: int) -> np.ndarray:
    """Rows with exact copies, near-copies 1e-7 apart and zero rows."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, d)).astype(np.float32)
    for i in range(1, n):
        match i % 5:
            case 0:
                values[i] = values[i // 2]
            case 1:
                values[i] = values[i // 2]
                values[i, 0] += np.float32(1e-7)
            case 2:
                values[i] = 0
    return reference.normalise(values)


def some_rows(seed: int, rows: int, columns: int, most: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [sorted(set(rng.integers(0, columns, rng.integers(0, most)).tolist())) for _ in range(rows)]


def csr(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, rows)])
    return indptr.astype(np.uint64), np.array([i for row in rows for i in row], dtype=np.uint32)


@pytest.mark.parametrize("simd", LEVELS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 60), d=st.integers(1, 40), k=st.integers(0, 12))
def test_top_k(simd: str, seed: int, n: int, d: int, k: int) -> None:
    vectors = awkward(seed, n, d)
    queries = np.random.default_rng(seed).standard_normal((3, d)).astype(np.float32)
    queries[2] = 0
    for codes in (None, kernels.quantise(vectors)):
        ids, scores = kernels.top_k(vectors, queries, k, codes=codes, simd=simd)
        assert ids.shape == scores.shape == (3, min(k, n))
        for query, row, row_scores in zip(queries, ids, scores, strict=True):
            wanted = reference.top_k(vectors, query, k)
            assert list(zip(row.tolist(), row_scores.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("simd", LEVELS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), d=st.integers(1, 20), k=st.integers(0, 8))
def test_cosine_knn(simd: str, seed: int, n: int, d: int, k: int) -> None:
    vectors = awkward(seed, n, d)
    exclude = some_rows(seed, n, n, 5)
    ids, scores = kernels.cosine_knn(vectors, k, exclude=csr(exclude), simd=simd, threads=2)
    assert ids.shape == (n, min(k, n - 1))
    for row, row_scores, wanted in zip(ids, scores, reference.cosine_knn(vectors, k, exclude), strict=True):
        wanted = wanted + [(NONE, 0.0)] * (len(row) - len(wanted))
        assert list(zip(row.tolist(), row_scores.tolist(), strict=True)) == wanted


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), words=st.integers(0, 30), d=st.integers(1, 9))
def test_keyword_means(seed: int, words: int, d: int) -> None:
    sentences = awkward(seed, 20, d)
    rows = some_rows(seed, words, 20, 9)
    assert np.array_equal(
        kernels.keyword_means(csr(rows), sentences), reference.keyword_means(rows, sentences)
    )
    unit = kernels.keyword_means(csr(rows), sentences, unit=True, threads=1)
    assert np.array_equal(unit, reference.normalise(reference.keyword_means(rows, sentences)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 30), d=st.integers(1, 70), room=st.integers(0, 9999))
def test_keyword_means_by_words(seed: int, words: int, d: int, room: int) -> None:
    """Sentences made on the way, however many columns at a time, are those of two steps."""
    basis = awkward(seed, words, d)
    rows = some_rows(seed, 25, words, 6)
    turned = [[s for s, row in enumerate(rows) if word in row] for word in range(words)]
    own = csr(rows)
    vectors = kernels.embed_rows(basis, own, np.ones(len(own[1]), np.uint32))
    wanted = reference.keyword_means(turned, vectors)
    for threads in (1, 2):
        made = _core.keyword_means_by_words(basis, own, csr(turned), room=room, threads=threads)
        assert np.array_equal(made, wanted)


@given(lists=st.lists(st.lists(st.integers(0, 30), unique=True), max_size=4))
def test_fuse_ranks(lists: list[list[int]]) -> None:
    ids, scores = kernels.fuse_ranks(lists)
    assert list(zip(ids.tolist(), scores.tolist(), strict=True)) == reference.fuse_ranks(lists)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), dims=st.integers(1, 6))
def test_embedder_finds_the_leading_directions(seed: int, dims: int) -> None:
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, dims, 30)
    counts = np.zeros((30, 8 * dims))
    for unit, topic in enumerate(topics):  # as many clear directions as there are topics
        for word in rng.integers(0, 8, 12):
            counts[unit, topic * 8 + word] += 1
    rows = [np.flatnonzero(row).tolist() for row in counts]
    repeats = np.concatenate([row[row > 0] for row in counts]).astype(np.uint32)
    strength = np.linalg.svd(reference.embedder_rows(counts), compute_uv=False) ** 2
    # A direction ten thousand times weaker than the strongest is found to a per cent in 32 bits: too
    # weak to matter, and to compare.
    assume(not ((strength > 1e-12 * strength[0]) & (strength < 1e-4 * strength[0])).any())
    wanted = reference.embedder_cosines(counts, 48)
    basis = kernels.fit_embedder(csr(rows), repeats, 8 * dims, dims=48, rounds=8)
    found = kernels.embed_rows(basis, csr(rows), repeats)
    assert np.allclose(found @ found.T, wanted, atol=0.01)
    small = kernels.fit_embedder(csr(rows), repeats, 8 * dims, dims=dims, threads=1)
    assert small.shape[1] <= dims
    again = kernels.fit_embedder(csr(rows), repeats, 8 * dims, dims=dims, threads=3)
    assert np.array_equal(small, again)


def test_embedding_nothing() -> None:
    basis = kernels.fit_embedder(([0, 2], [0, 1]), [1, 1], 3)
    assert basis.shape == (3, 1)
    assert kernels.embed_rows(basis, ([0, 0, 1], [2]), [1]).tolist() == [[0.0], [0.0]]
    assert kernels.fit_embedder(([0], []), [], 0).shape == (0, 1)


NAN = np.array([[np.nan, 0.0]])
GOOD = np.eye(2)
ROWS = ([0, 1, 2], [0, 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda: kernels.top_k(NAN, GOOD, 1),
        lambda: kernels.top_k(GOOD, NAN, 1),
        lambda: kernels.top_k(GOOD, np.ones((1, 3)), 1),
        lambda: kernels.top_k(np.ones((2, 0)), np.ones((1, 0)), 1),
        lambda: kernels.top_k(GOOD, GOOD, 1, ids=[1, 0]),
        lambda: kernels.top_k(GOOD, GOOD, 1, ids=[2]),
        lambda: kernels.top_k(GOOD, GOOD, 1, simd="mmx"),
        lambda: kernels.top_k(GOOD, GOOD, 1, codes=kernels.quantise(np.eye(3))),
        lambda: kernels.quantise(NAN),
        lambda: kernels.cosine_knn(NAN, 1),
        lambda: kernels.cosine_knn(GOOD, 1, exclude=([0, 1], [0])),
        lambda: kernels.cosine_knn(GOOD, 1, exclude=([0, 1, 2], [0, 7])),
        lambda: kernels.keyword_means(([0, 1], [5]), GOOD),
        lambda: kernels.keyword_means(([1, 0], []), GOOD),
        lambda: kernels.fit_embedder(ROWS, [1], 2),
        lambda: kernels.fit_embedder(ROWS, [1, 1], 1),
        lambda: kernels.fit_embedder(ROWS, [1, 1], 2, dims=0),
        lambda: kernels.embed_rows(GOOD, ([0, 1], [2]), [1]),
        lambda: kernels.fuse_ranks([[1, 1]]),
        lambda: kernels.fuse_ranks([[1]], constant=-1.0),
    ],
)
def test_bad_input_raises(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError):
        call()


def test_a_long_search_can_be_stopped() -> None:
    def search(size: int, report: Report) -> None:
        vectors = np.random.default_rng(0).standard_normal((size, 64)).astype(np.float32)
        kernels.cosine_knn(vectors, 5, report=report)

    is_stopped(search, 30_000)


def _kinds() -> dict[str, np.ndarray]:
    """Vectors that byte codes fit well, badly, or not at all."""
    rng = np.random.default_rng(11)
    even = rng.standard_normal((700, 65)).astype(np.float32)
    even /= np.linalg.norm(even, axis=1, keepdims=True)
    spiky = 0.003 * even
    spiky[np.arange(700), rng.integers(0, 65, 700)] += 1
    near = even[rng.integers(0, 5, 700)] + np.float32(1e-4) * even
    uneven = even * np.float32(10.0) ** rng.integers(-3, 3, (700, 1)).astype(np.float32)
    return {
        "even": even,
        "spiky": spiky,
        "nearer than codes tell": near,
        "uneven": uneven,
        "small": np.float32(1e-20) * even,
        "equal": np.repeat(even[:3], 3400, axis=0),
        "short": even[:, :2].copy(),
        "three": even[:3],
    }


@pytest.mark.parametrize("kind", sorted(_kinds()))
def test_neighbours_and_scans_are_equal_by_all_instructions(kind: str) -> None:
    vectors = np.ascontiguousarray(_kinds()[kind])
    codes = kernels.quantise(vectors)
    queries = vectors[:: max(1, len(vectors) // 7)]
    some = vectors[:2000]
    found = kernels.top_k(vectors, queries, 9, simd="portable")
    near = kernels.cosine_knn(some, 5, simd="portable")
    for level in ("auto", *LEVELS):
        for kept in (None, codes):
            again = kernels.top_k(vectors, queries, 9, codes=kept, simd=level)
            assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True)), level
        again = kernels.cosine_knn(some, 5, simd=level)
        assert all(np.array_equal(a, b) for a, b in zip(near, again, strict=True)), level
