"""Exact vector search, cosine neighbours, keyword means, the built-in embedder and its channels.

Vectors are float32 matrices, one row each. Scores are exact dot products, summed in float64 in index
order. Results are ordered by score descending, then id ascending, and are equal to the byte for any
number of threads and on every machine. Wrong shapes, NaN, and ids that are out of range or out of order
raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F32, F64, U32, Csr, Report, callback, count, flag, number, text, whole


class Codes(NamedTuple):
    """Vectors as bytes: row i is `scale[i] * codes[i]` within a distance of `residual[i]`."""

    codes: NDArray[np.int8]
    scale: F32
    residual: F32


class KeywordPool(NamedTuple):
    """The candidate pool of the keyword channel, best unit first, and the keywords visited for it."""

    units: U32
    scores: F64
    keywords: U32
    """For each unit the keyword that contributed it."""
    seeds: U32
    seed_scores: F64
    tokens: int


def normalise(vectors: ArrayLike) -> F32:
    """Scale rows to length 1; rows shorter than 1e-12 become zero."""
    return _core.normalise_vectors(arrays.vectors(vectors, "vectors"))


def quantise(vectors: ArrayLike, *, threads: int = 0, report: Report = None) -> Codes:
    """Return byte codes of vectors float32[n, d], which speed up `top_k` and `keyword_pool`."""
    made = _core.quantise_vectors(
        arrays.vectors(vectors, "vectors"), threads=count(threads, "threads"), report=callback(report)
    )
    return Codes(*made)


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
    """Return the best min(k, n) of n vectors for each query float32[q, d]: ids and scores, [q, min(k, n)].

    Args:
        codes: byte codes of the same vectors; they change the speed, not the result.
        ids: strictly ascending rows to which the search is restricted.
        simd: auto, portable, avx2, avx2-vnni, avx512 or avx512-vnni.

    Examples:
        >>> ids, scores = top_k([[1, 0], [0.5, 0.5], [0, 1]], [[1, 0]], 2)
        >>> ids.tolist(), scores.tolist()
        ([[0, 1]], [[1.0, 0.5]])
    """
    return _core.vector_top_k(
        arrays.vectors(vectors, "vectors"),
        arrays.vectors(queries, "queries"),
        count(k, "k"),
        codes=None if codes is None else arrays.codes(codes),
        ids=None if ids is None else whole(ids, np.uint32, "ids"),
        simd=text(simd, "simd"),
        threads=count(threads, "threads"),
        report=callback(report),
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
    """Return the min(k, n - 1) nearest other rows of every row: ids and scores.

    Row i of `exclude` names rows that may not be neighbours of i. If too few remain, ids are padded with
    2**32 - 1 and scores with 0. For normalised vectors the score is the cosine. Source: KET-RAG, Alg. 3.

    Examples:
        >>> ids, scores = cosine_knn([[1, 0], [0.5, 0.5], [0, 0.5]], 1)
        >>> ids.tolist(), scores.tolist()
        ([[1], [0], [1]], [[0.5], [0.5], [0.25]])
    """
    return _core.cosine_knn(
        arrays.vectors(vectors, "vectors"),
        count(k, "k"),
        exclude=None if exclude is None else arrays.rows(exclude, "exclude"),
        simd=text(simd, "simd"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def keyword_means(
    word_sentences: Csr, sentences: ArrayLike, *, unit: bool = False, threads: int = 0, report: Report = None
) -> F32:
    """Return for each keyword the mean vector of its sentences: float32[words, d] (KET-RAG, Alg. 3).

    With `unit` the means are normalised. A keyword without sentences gets zeros.
    """
    return _core.keyword_means(
        *arrays.rows(word_sentences, "word_sentences"),
        arrays.vectors(sentences, "sentences"),
        unit=flag(unit, "unit"),
        threads=count(threads, "threads"),
        report=callback(report),
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
    """Fit a vector for every word on the corpus alone: float32[words, at most dims].

    `unit_words` holds the word ids of each unit and `repeats` their counts there. Latent semantic
    analysis (Deerwester et al. 1990) of BM25-weighted rows by randomised subspace iteration (Halko,
    Martinsson and Tropp 2011). `rounds` iterations run on at most `sample` units.
    """
    return _core.fit_embedder(
        *arrays.rows(unit_words, "unit_words"),
        whole(repeats, np.uint32, "repeats"),
        count(words, "words"),
        dims=count(dims, "dims"),
        idf_power=count(idf_power, "idf_power", 2**32 - 1),
        rounds=count(rounds, "rounds"),
        sample=count(sample, "sample"),
        seed=count(seed, "seed", 2**64 - 1),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def embed_rows(
    basis: ArrayLike, text_words: Csr, repeats: ArrayLike, *, threads: int = 0, report: Report = None
) -> F32:
    """Return normalised vectors of texts given as word counts: float32[texts, dims].

    A text without a known word is a zero vector.
    """
    return _core.embed_rows(
        arrays.vectors(basis, "basis"),
        *arrays.rows(text_words, "text_words"),
        whole(repeats, np.uint32, "repeats"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


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
    """Return the pool of KET-RAG's keyword channel, best unit first.

    `limit` is twice the channel's budget; `codes` are byte codes of `keywords`. For many questions on
    one corpus use an index: this call checks every array again.
    """
    return KeywordPool(
        *_core.keyword_pool(
            arrays.vectors(keywords, "keywords"),
            *arrays.rows(word_units, "word_units"),
            arrays.vectors(units, "units"),
            whole(unit_tokens, np.uint32, "unit_tokens"),
            arrays.vectors(query, "query", 1),
            count(limit, "limit"),
            most_seeds=None if most_seeds is None else count(most_seeds, "most_seeds"),
            codes=None if codes is None else arrays.codes(codes),
            simd=text(simd, "simd"),
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
    """Return KNNG-RAG's order: units, similarities, and the seed that each one followed.

    The list ends with the first unit at which the sum of tokens exceeds `limit`.
    """
    return _core.knng_order(
        arrays.vectors(units, "units"),
        *arrays.rows(neighbours, "neighbours"),
        whole(unit_tokens, np.uint32, "unit_tokens"),
        arrays.vectors(query, "query", 1),
        count(limit, "limit"),
        simd=text(simd, "simd"),
    )


def fuse_ranks(lists: Sequence[ArrayLike], *, constant: float = 60.0) -> tuple[U32, F64]:
    """Fuse ranked id lists by reciprocal rank (Cormack, Clarke and Buettcher 2009): ids and scores.

    Examples:
        >>> ids, scores = fuse_ranks([[3, 1], [1, 2]])
        >>> ids.tolist()
        [1, 3, 2]
    """
    if not isinstance(lists, list | tuple):
        raise InputError(f"lists must be a list of ranked lists, not a {type(lists).__name__}")
    ranked = [whole(ids, np.uint32, f"list {i} of lists") for i, ids in enumerate(lists)]
    return _core.fuse_ranks(ranked, constant=number(constant, "constant"))
