"""Keyword means, the built-in embedder, and the channels of vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F32, F64, U32, Csr, Report, callback, count, flag, text, whole
from ketrag_fast.kernels.vectors import Codes


class KeywordPool(NamedTuple):
    """The candidate pool of the keyword channel, best unit first, and the keywords visited for it."""

    units: U32
    scores: F64
    keywords: U32
    """For each unit the keyword that contributed it."""
    seeds: U32
    seed_scores: F64
    tokens: int


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
