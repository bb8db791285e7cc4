"""k-means with every distance and sum spelled out: the oracle of `rust/core/src/graph/kmeans`."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tests.oracles.select import stage_words

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def distances(rows: F32, centre: F64) -> F64:
    """The squared distance of each row, its squares added in the order of the dimensions."""
    total = np.zeros(len(rows))
    for column, place in zip(rows.astype(np.float64).T, centre, strict=True):
        total += (column - place) * (column - place)
    return total


def seeds(rows: F32, k: int, seed: int) -> F64:
    """k-means++: the first row drawn evenly, each next one in proportion to its distance from the chosen."""
    words = stage_words(seed, "kmeans")
    last = 2**64 - 2**64 % len(rows)
    chosen = [next(word for word in words if word < last) % len(rows)]
    least = np.full(len(rows), np.inf)
    while len(chosen) < k:
        least = np.minimum(least, distances(rows, rows[chosen[-1]].astype(np.float64)))
        sums = list(accumulate(least.tolist()))
        if sums[-1] > 0:
            target = (next(words) >> 11) / 2**53 * sums[-1]
            positive = [i for i, value in enumerate(least) if value > 0]
            chosen.append(next((i for i, value in enumerate(sums) if value > target), positive[-1]))
        else:
            chosen.append(next(i for i in range(len(rows)) if i not in chosen))
    return rows[chosen].astype(np.float64)


def nearest(rows: F32, centres: F64) -> NDArray[np.int64]:
    """The nearest centre of each row; of equally near ones the first."""
    return np.asarray(np.argmin([distances(rows, centre) for centre in centres], axis=0))


def moved(rows: F32, labels: NDArray[np.int64], centres: F64) -> F64:
    """The mean of each centre's rows; one without rows goes to the row farthest from its own centre."""
    own = [float(distances(rows[i : i + 1], centres[label])[0]) for i, label in enumerate(labels)]
    far = iter(sorted(range(len(rows)), key=lambda i: (-own[i], i)))
    result = np.zeros_like(centres)
    for c in range(len(centres)):
        members = np.flatnonzero(labels == c)
        for i in members:
            result[c] += rows[i]
        result[c] = result[c] / len(members) if len(members) else rows[next(far)]
    return result


def kmeans(rows: F32, k: int, *, seed: int = 42, iterations: int = 25) -> tuple[NDArray[np.int64], F64]:
    """(labels, centres)."""
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros((0, rows.shape[1]))
    centres = seeds(rows, min(k, len(rows)), seed)
    for _ in range(iterations):
        centres = moved(rows, nearest(rows, centres), centres)
    return nearest(rows, centres), centres
