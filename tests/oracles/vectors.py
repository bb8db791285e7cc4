"""Plain versions of the vector kernels: the order and the sums of the specification, no speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

F32 = NDArray[np.float32]
Rows = Sequence[Sequence[int]]
Ranked = list[tuple[int, float]]


def dot(a: F32, b: F32) -> float:
    """The reference similarity (specs 0.2): exact products, added in index order in f64."""
    total = 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total += x * y
    return total


def normalise(vectors: ArrayLike) -> F32:
    """Rows scaled to length 1, each sum in order; rows shorter than 1e-12 become zero."""
    rows = np.asarray(vectors, np.float32).astype(np.float64)
    lengths = np.sqrt(np.cumsum(rows**2, axis=1)[:, -1:]) if rows.shape[1] else np.zeros((len(rows), 1))
    return np.where(lengths < 1e-12, 0, rows / np.maximum(lengths, 1e-12)).astype(np.float32)


def ranked(scores: dict[int, float], k: int) -> Ranked:
    """Score descending, then id ascending."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


def top_k(vectors: F32, query: F32, k: int) -> Ranked:
    """The best k rows."""
    return ranked({i: dot(row, query) for i, row in enumerate(vectors)}, k)


def cosine_knn(vectors: F32, k: int, exclude: Rows) -> list[Ranked]:
    """All pairs, without the row itself and what is excluded for it."""
    n = len(vectors)
    return [
        ranked({j: dot(vectors[i], vectors[j]) for j in range(n) if j != i and j not in exclude[i]}, k)
        for i in range(n)
    ]


def keyword_means(word_sentences: Rows, sentences: F32) -> F32:
    """The mean of each keyword's sentences, added in ascending order in f64."""
    means = np.zeros((len(word_sentences), sentences.shape[1]), dtype=np.float32)
    for word, ids in enumerate(word_sentences):
        total = np.zeros(sentences.shape[1])
        for sentence in sorted(set(ids)):
            total = total + sentences[sentence]
        means[word] = total / max(len(set(ids)), 1)
    return means


def fuse_ranks(lists: Sequence[Sequence[int]], constant: float = 60.0) -> Ranked:
    """Reciprocal-rank fusion, added list by list."""
    scores: dict[int, float] = {}
    for ids in lists:
        for rank, i in enumerate(ids, start=1):
            scores[i] = scores.get(i, 0.0) + 1.0 / (constant + rank)
    return ranked(scores, len(scores))


def embedder_rows(counts: NDArray[np.float64], idf_power: int = 2, k1: float = 1.2) -> NDArray[np.float64]:
    """What the built-in embedder factorises: saturated counts times idf to a power, rows of length 1."""
    n = len(counts)
    df = (counts > 0).sum(axis=0)
    weights = np.log(1 + (n - df + 0.5) / (df + 0.5)) ** idf_power
    rows = counts * (k1 + 1) / (counts + k1) * weights
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def embedder_cosines(counts: NDArray[np.float64], dims: int, idf_power: int = 2) -> NDArray[np.float64]:
    """Cosines of the units in the space of the leading right singular vectors, by a full SVD.

    Angles, because the vectors themselves are free up to sign and to rotation of equal directions.
    """
    rows = embedder_rows(counts, idf_power)
    _, _, directions = np.linalg.svd(rows, full_matrices=False)
    inside = rows @ directions[:dims].T
    lengths = np.linalg.norm(inside, axis=1, keepdims=True)
    inside = inside / np.where(lengths > 0, lengths, 1.0)
    return np.asarray(inside @ inside.T)
