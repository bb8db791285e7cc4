"""Keyword means and the built-in embedder."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F32, Csr, Report, callback, count, flag, whole


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
