"""A layer of `TransformerConv` (UniMP) written out, with the signals of LeSeGR in it (specs 40, 4.4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Matrix = tuple[Values, Values]
"""Inputs x outputs, and the bias."""


def layer(
    h: Values,
    edges: Sequence[Sequence[int]],
    factors: Sequence[Sequence[float]],
    weights: Sequence[float],
    matrices: Mapping[str, Matrix],
    heads: int,
    *,
    relu: bool = False,
) -> Values:
    """`x'_i = W1 x_i + sum over j of a_ij W2 x_j`, `a_ij = softmax_j((W3 x_i) . (W4 x_j) / sqrt(width))`.

    In keys and values x_j stands for the factor of the edge times h_j, in the own part x_i for the weight of
    the text times h_i. `matrices` are W1 to W4 under `own`, `value`, `query`, `key`; heads lie one after the
    other.
    """

    def product(x: Values, name: str) -> Values:
        weight, bias = matrices[name]
        return np.asarray(x @ weight + bias)

    rows = []
    for text, row in enumerate(edges):
        out = product(weights[text] * h[text], "own")
        width = len(out) // heads
        query = product(h[text], "query")
        keys = [product(f * h[other], "key") for other, f in zip(row, factors[text], strict=True)]
        values = [product(f * h[other], "value") for other, f in zip(row, factors[text], strict=True)]
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = [float(query[part] @ key[part]) / math.sqrt(width) for key in keys]
            total = sum(math.exp(score - max(scores)) for score in scores)
            for score, value in zip(scores, values, strict=True):
                out[part] += math.exp(score - max(scores)) / total * value[part]
        rows.append(np.maximum(out, 0.0) if relu else out)
    return np.array(rows)


def weigh(edges: Sequence[Sequence[int]], vectors: Values, matrices: Sequence[Matrix]) -> list[float]:
    """Alpha of each edge: three matrices over the difference of its ends, ReLU between them, sigmoid last."""
    found = []
    for text, row in enumerate(edges):
        for other in row:
            x = vectors[text] - vectors[other]
            for weight, bias in matrices[:2]:
                x = np.maximum(x @ weight + bias, 0.0)
            weight, bias = matrices[2]
            found.append(1.0 / (1.0 + math.exp(-float((x @ weight + bias)[0]))))
    return found
