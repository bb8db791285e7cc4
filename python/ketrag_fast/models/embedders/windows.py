"""Texts longer than the model reads: cut into windows of tokens, embedded apart, averaged (specs 0.5)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

RULE: Final = "windows/1"
"""Part of a model's fingerprint: how long texts become one vector."""


def spans(tokens: int, longest: int | None) -> list[tuple[int, int]]:
    """[start, end) of the fewest windows of at most `longest` tokens, of sizes that differ by at most one."""
    if longest is None or tokens <= longest:
        return [(0, tokens)]
    if longest < 1:
        raise ValueError("the model reads no token at all")
    count = -(-tokens // longest)
    size, more = divmod(tokens, count)
    cuts = [0]
    for number in range(count):
        cuts.append(cuts[-1] + size + (number < more))
    return list(pairwise(cuts))


def average(pieces: NDArray[Any], owner: Sequence[int], weights: Sequence[int], texts: int) -> NDArray[Any]:
    """One vector a text [texts, d]: the mean of its windows' unit vectors, weighted by their tokens.

    `pieces` is [windows, d] and `owner` ascends. A text of one window keeps its vector as it is.
    Sums run in f64 in the order of the windows; the caller normalises.
    """
    if len(pieces) == texts:
        return pieces
    wide = pieces.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    units = wide / np.where(lengths > 0, lengths, 1.0)[:, None]
    owners = np.asarray(owner)
    counts = np.bincount(owners, minlength=texts)
    out = np.zeros((texts, pieces.shape[1]), np.float64)
    np.add.at(out, owners, units * np.asarray(weights, np.float64)[:, None])
    single = counts[owners] == 1
    out[owners[single]] = wide[single]
    return out
