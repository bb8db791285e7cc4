"""The part of a citation graph that a question is about, written out (specs 40, 4.4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Found:
    """As the kernel gives it: texts, their similarity, which are ranked, the edges among them and in all."""

    units: list[int]
    near: list[float]
    ranked: list[int]
    indptr: list[int]
    indices: list[int]
    places: list[int]


def candidates(
    vectors: NDArray[np.float32],
    vector: NDArray[np.float32],
    weights: NDArray[np.float64],
    edges: tuple[NDArray[Any], NDArray[Any]],
    kinds: NDArray[np.uint8],
    *,
    best: int,
    steps: int,
    wanted: int,
) -> Found:
    """The `best` texts by similarity and as many by similarity times weight, and what sends to them."""
    near = vectors.astype(np.float64) @ vector.astype(np.float64)
    ranked: set[int] = set()
    for scores in (near, weights * near):
        ranked |= set(sorted(range(len(near)), key=lambda text: (-scores[text], text))[:best])
    indptr, indices = edges[0].tolist(), edges[1].tolist()

    def into(text: int) -> list[int]:
        return [at for at in range(indptr[text], indptr[text + 1]) if kinds[at] & wanted]

    inside = set(ranked)
    for _ in range(steps):
        inside |= {indices[at] for text in inside for at in into(text)}
    units = sorted(inside)
    rows = [[at for at in into(text) if indices[at] in inside] for text in units]
    return Found(
        units,
        [float(near[text]) for text in units],
        [units.index(text) for text in sorted(ranked)],
        [0, *np.cumsum([len(row) for row in rows]).tolist()],
        [units.index(indices[at]) for row in rows for at in row],
        [at for row in rows for at in row],
    )
