"""Embed texts longer than the maximum input: split into token windows, embed these, average."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

RULE: Final = "windows/1"
"""Version of the rule for long texts, part of a model's fingerprint."""


def spans(tokens: int, longest: int | None) -> list[tuple[int, int]]:
    """Return [start, end) of the fewest windows of up to `longest` tokens, of almost equal size."""
    if longest is None or tokens <= longest:
        return [(0, tokens)]
    if longest < 1:
        raise ValueError(f"longest must be at least 1, got {longest}")
    count = -(-tokens // longest)
    size, more = divmod(tokens, count)
    cuts = [0]
    for number in range(count):
        cuts.append(cuts[-1] + size + (number < more))
    return list(pairwise(cuts))


def average(pieces: NDArray[Any], owner: Sequence[int], weights: Sequence[int], texts: int) -> NDArray[Any]:
    """Return one vector per text, [texts, d]: the token-weighted mean of its windows' unit vectors.

    `pieces` is [windows, d] and `owner` ascends. The vector of a single window is unchanged. Sums are f64 in
    window order; the caller normalises.
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
