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
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F32, F64, U32, Csr, Report, callback, count, flag, number, text, whole


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


def normalise(vectors: ArrayLike) -> F32:
    """Rows scaled to length 1; rows shorter than 1e-12 become zero (specs 0.2)."""
    return _core.normalise_vectors(arrays.vectors(vectors, "vectors"))


def quantise(vectors: ArrayLike, *, threads: int = 0, report: Report = None) -> Codes:
    """Byte codes of vectors float32[n, d], for `top_k` and `keyword_pool` to read instead."""
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
    """The best min(k, n) of n vectors for each query float32[q, d]: ids and scores, [q, min(k, n)].

    `ids` restricts the search to those rows (strictly ascending). `codes` must be the vectors' own:
    they change the speed, not the result. `simd` is auto, portable, avx2, avx2-vnni, avx512 or
    avx512-vnni.
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
    """The min(k, n - 1) nearest other rows of every row (KET-RAG 1.2 step 4, S2), ids and scores.

    Row i of `exclude` names rows that may not be neighbours of i (S1). Where too few are left, ids
    are padded with 2**32 - 1 and scores with 0. For normalised vectors the score is the cosine.
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
    """For each keyword the mean of its sentences' vectors (KET-RAG 1.2 step 9): float32[words, d].

    Lengths are kept unless `unit` (1.9 #4). A keyword of no sentence gets zeros.
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
    """A vector for every word, fitted on the corpus alone: float32[words, at most dims].

    `unit_words` holds the word ids of each unit and `repeats` how often each occurs there. Latent
    semantic analysis (Deerwester et al. 1990) of BM25-weighted rows by randomised subspace iteration
    (Halko, Martinsson and Tropp 2011). `rounds` of it run on at most `sample` units.
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
    """Normalised vectors of texts given as word counts: float32[texts, dims].

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
    """The pool of KET-RAG's keyword channel (1.5 step 3), best unit first (step 4).

    `limit` is twice the channel's budget; `codes` are byte codes of `keywords`. For many questions on
    one corpus use an index: this call checks every array anew.
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
    """KNNG-RAG's order (KET-RAG 1.6): units, similarities, and the seed that each one followed.

    The list ends with the first unit whose tokens exceed `limit` in all.
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
    """Reciprocal-rank fusion of ranked id lists (Cormack, Clarke and Buettcher 2009)."""
    if not isinstance(lists, list | tuple):
        raise InputError(f"lists must be a list of ranked lists, not a {type(lists).__name__}")
    ranked = [whole(ids, np.uint32, f"list {i} of lists") for i, ids in enumerate(lists)]
    return _core.fuse_ranks(ranked, constant=number(constant, "constant"))
