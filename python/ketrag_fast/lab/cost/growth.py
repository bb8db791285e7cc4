"""Extrapolation from two samples: how each part of a build grows with the characters of the documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEEPEST: Final = 1.15


def seconds_at(
    characters: int,
    sizes: Sequence[int],
    took: Sequence[Mapping[str, float]],
    powers: Mapping[str, float],
) -> dict[str, float]:
    """Return the seconds of each stage at a size: a fixed and a growing part, from one or two samples.

    `powers` are declared by stages whose time does not grow linearly with the text.
    """
    found = {}
    for stage, last in took[-1].items():
        if characters == sizes[-1]:
            found[stage] = last
        elif powers.get(stage, 1.0) != 1.0:
            found[stage] = last * (characters / max(sizes[-1], 1)) ** powers[stage]
        else:
            found[stage] = _affine(characters, sizes, [part.get(stage, 0.0) for part in took])
    return found


def _affine(characters: int, sizes: Sequence[int], values: Sequence[float]) -> float:
    """Extrapolate through both points. Noise of a small sample may neither flatten nor explode the slope."""
    last = values[-1]
    even = last / max(sizes[-1], 1)
    slope = even
    if len(sizes) > 1 and sizes[-1] > sizes[0]:
        slope = (last - values[0]) / (sizes[-1] - sizes[0])
        slope = min(max(slope, 0.5 * even), even)
    return max(last + slope * (characters - sizes[-1]), 0.0)


def bytes_at(characters: int, sizes: Sequence[int], held: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the bytes of each stage. Words and their vectors grow slower than the text, by a power."""
    found = {}
    for stage, last in held[-1].items():
        power = 1.0
        first = held[0].get(stage, 0)
        if len(sizes) > 1 and sizes[-1] > sizes[0] > 0 and first > 0 and last > first:
            power = min(max(math.log(last / first) / math.log(sizes[-1] / sizes[0]), 0.3), _STEEPEST)
        found[stage] = round(last * (characters / max(sizes[-1], 1)) ** power)
    return found


def chunks_at(documents: int, characters: int, lengths: NDArray[np.int64], chunks: NDArray[np.int64]) -> int:
    """Return the number of chunks of all documents, from a fit of chunks per document and per character.

    Short documents are one chunk whatever their length; long ones grow with it.
    """
    if not len(lengths) or not documents:
        return 0
    even = float(chunks.sum()) * characters / max(float(lengths.sum()), 1.0)
    if len(lengths) < 8 or lengths.min() == lengths.max():
        return max(round(even), documents)
    table = np.stack([np.ones(len(lengths)), lengths.astype(np.float64)], axis=1)
    (each, per), *_ = np.linalg.lstsq(table, chunks.astype(np.float64), rcond=None)
    if each < 0 or per < 0:
        return max(round(even), documents)
    return max(round(float(each * documents + per * characters)), documents)
