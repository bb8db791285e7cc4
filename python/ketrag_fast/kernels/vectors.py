"""Exact vector search, cosine neighbours, keyword means, the built-in embedder and its channels.

Vectors are float32 matrices, one row each. Scores are the reference similarity: products taken in
index order, exact and summed in float64. Results are ordered by score descending, then id ascending,
and are equal to the byte for any number of threads and on every machine. Wrong shapes, NaN, and ids
that are out of range or out of order raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import F32, F64, U32, U64, Report

Csr = tuple[ArrayLike, ArrayLike]
"""Compressed rows: (indptr uint64[rows + 1], indices uint32), ids ascending in each row."""


class Codes(NamedTuple):
    """Vectors in one byte a value; row i is `scale[i] * codes[i]` within a distance `residual[i]`."""

    codes: NDArray[np.int8]
    scale: F32
    residual: F32


class KeywordPool(NamedTuple):
    """The keyword channel's pool, best unit first, and the keywords that were visited for it."""

    units: U32
    scores: F64
    keywords: U32
    """For each unit the keyword that brought it."""
    seeds: U32
    seed_scores: F64
    tokens: int


def _f32(values: ArrayLike) -> F32:
    return np.ascontiguousarray(values, dtype=np.float32)


def _u32(values: ArrayLike) -> U32:
    return np.ascontiguousarray(values, dtype=np.uint32)


def _csr(rows: Csr) -> tuple[U64, U32]:
    return np.ascontiguousarray(rows[0], dtype=np.uint64), _u32(rows[1])


def normalise(vectors: ArrayLike) -> F32:
    """Rows scaled to length 1; rows shorter than 1e-12 become zero (specs 0.2)."""
    return _core.normalise_vectors(_f32(vectors))


def quantise(vectors: ArrayLike, *, threads: int = 0, report: Report = None) -> Codes:
    """Byte codes of vectors float32[n, d], for `top_k` and `keyword_pool` to read instead."""
    return Codes(*_core.quantise_vectors(_f32(vectors), threads=threads, report=report))


def top_k(
    vectors: ArrayLike,
    queries: ArrayLike,
    k: int,
    *,
    codes: Codes | None = None,
    ids: ArrayLike | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> tuple[U32, F64]:
    """The best min(k, n) of n vectors for each query float32[q, d]: ids and scores, [q, min(k, n)].

    `ids` restricts the search to those rows (strictly ascending). `codes` must be the vectors' own:
    they change the speed, not the result. `simd` is auto, portable, avx2, avx2-vnni, avx512 or
    avx512-vnni.
    """
    return _core.vector_top_k(
        _f32(vectors),
        _f32(queries),
        k,
        codes=codes,
        ids=None if ids is None else _u32(ids),
        simd=simd,
        threads=threads,
        report=report,
    )


def cosine_knn(
    vectors: ArrayLike,
    k: int,
    *,
    exclude: Csr | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> tuple[U32, F64]:
    """The min(k, n - 1) nearest other rows of every row (KET-RAG 1.2 step 4, S2), ids and scores.

    Row i of `exclude` names rows that may not be neighbours of i (S1). Where too few are left, ids
    are padded with 2**32 - 1 and scores with 0. For normalised vectors the score is the cosine.
    """
    return _core.cosine_knn(
        _f32(vectors),
        k,
        exclude=None if exclude is None else _csr(exclude),
        simd=simd,
        threads=threads,
        report=report,
    )


def keyword_means(
    word_sentences: Csr, sentences: ArrayLike, *, unit: bool = False, threads: int = 0, report: Report = None
) -> F32:
    """For each keyword the mean of its sentences' vectors (KET-RAG 1.2 step 9): float32[words, d].

    Lengths are kept unless `unit` (1.9 #4). A keyword of no sentence gets zeros.
    """
    return _core.keyword_means(
        *_csr(word_sentences), _f32(sentences), unit=unit, threads=threads, report=report
    )


def fit_embedder(
    unit_words: Csr,
    repeats: ArrayLike,
    words: int,
    *,
    dims: int = 128,
    idf_power: int = 2,
    rounds: int = 5,
    sample: int = 20_000,
    seed: int = 42,
    threads: int = 0,
    report: Report = None,
) -> F32:
    """A vector for every word, fitted on the corpus alone: float32[words, at most dims].

    `unit_words` holds the word ids of each unit and `repeats` how often each occurs there. Latent
    semantic analysis (Deerwester et al. 1990) of BM25-weighted rows by randomised subspace iteration
    (Halko, Martinsson and Tropp 2011). `rounds` of it run on at most `sample` units.
    """
    return _core.fit_embedder(
        *_csr(unit_words),
        _u32(repeats),
        words,
        dims=dims,
        idf_power=idf_power,
        rounds=rounds,
        sample=sample,
        seed=seed,
        threads=threads,
        report=report,
    )


def embed_rows(
    basis: ArrayLike, text_words: Csr, repeats: ArrayLike, *, threads: int = 0, report: Report = None
) -> F32:
    """Normalised vectors of texts given as word counts: float32[texts, dims].

    A text without a known word is a zero vector.
    """
    return _core.embed_rows(_f32(basis), *_csr(text_words), _u32(repeats), threads=threads, report=report)


def keyword_pool(
    keywords: ArrayLike,
    word_units: Csr,
    units: ArrayLike,
    unit_tokens: ArrayLike,
    query: ArrayLike,
    limit: int,
    *,
    most_seeds: int | None = None,
    codes: Codes | None = None,
    simd: str = "auto",
) -> KeywordPool:
    """The pool of KET-RAG's keyword channel (1.5 step 3), best unit first (step 4).

    `limit` is twice the channel's budget; `codes` are byte codes of `keywords`. For many questions on
    one corpus use an index: this call checks every array anew.
    """
    return KeywordPool(
        *_core.keyword_pool(
            _f32(keywords),
            *_csr(word_units),
            _f32(units),
            _u32(unit_tokens),
            _f32(query),
            limit,
            most_seeds=most_seeds,
            codes=codes,
            simd=simd,
        )
    )


def knng_order(
    units: ArrayLike,
    neighbours: Csr,
    unit_tokens: ArrayLike,
    query: ArrayLike,
    limit: int,
    *,
    simd: str = "auto",
) -> tuple[U32, F64, U32]:
    """KNNG-RAG's order (KET-RAG 1.6): units, similarities, and the seed that each one followed.

    The list ends with the first unit whose tokens exceed `limit` in all.
    """
    return _core.knng_order(_f32(units), *_csr(neighbours), _u32(unit_tokens), _f32(query), limit, simd=simd)


def fuse_ranks(lists: Sequence[ArrayLike], *, constant: float = 60.0) -> tuple[U32, F64]:
    """Reciprocal-rank fusion of ranked id lists (Cormack, Clarke and Buettcher 2009)."""
    return _core.fuse_ranks([_u32(ids) for ids in lists], constant=constant)
