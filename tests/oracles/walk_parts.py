"""BM25 and the parts of the walk, slow and plain: what `reference.walk` is made of.

Works on the arrays of `kernels.build_links`, one dense matrix per relation, every unit and node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
NONE = 2**32 - 1


@dataclass(frozen=True)
class WalkQuestion:
    """Ids of what the index knows of a question."""

    keywords: list[int]
    names: list[int]
    subjects: list[int]
    shares: tuple[float, ...] = ()

    @property
    def weights(self) -> Array:
        """The weight of each keyword; 1 unless `shares` has others."""
        return np.array(self.shares or [1.0] * len(self.keywords))


def vocabulary(links: Arrays, name: str) -> list[str]:
    """The strings of one vocabulary, by id."""
    blob, ends = links[f"{name}_blob"].tobytes(), [int(x) for x in links[f"{name}_offsets"]]
    return [blob[a:b].decode() for a, b in pairwise(ends)]


def rows_of(links: Arrays, name: str, columns: int, values: str | None = None) -> Array:
    """Rows of a relation as a dense matrix, of ones or of the `values` array.

    `unit_subjects` is not stored: the subjects that a unit has or mentions. Sentences have positions in the
    row of their unit, or ids increased by its length.
    """
    if name.startswith("sentence_"):
        return _rows_of_sentences(links, name.removeprefix("sentence_"), columns)
    if name == "unit_subjects":
        subjects = rows_of(links, "unit_mentions", columns)
        own = np.flatnonzero(links["unit_subject"] != np.iinfo(np.uint32).max)
        subjects[own, links["unit_subject"][own]] = 1
        return subjects
    indptr, indices = links[f"{name}_indptr"], links[f"{name}_indices"]
    out = np.zeros((len(indptr) - 1, columns))
    for row in range(len(out)):
        at = slice(int(indptr[row]), int(indptr[row + 1]))
        out[row, indices[at]] = links[values][at] if values else 1.0
    return out


def _rows_of_sentences(links: Arrays, name: str, columns: int) -> Array:
    own_ends, own_ids = links[f"unit_{name}_indptr"].tolist(), links[f"unit_{name}_indices"].tolist()
    ends, stored = links[f"sentence_{name}_indptr"].tolist(), links[f"sentence_{name}_indices"].tolist()
    out = np.zeros((len(ends) - 1, columns))
    for unit, (first, last) in enumerate(pairwise(links["first_sentence"].tolist())):
        own = own_ids[own_ends[unit] : own_ends[unit + 1]]
        for sentence in range(first, last):
            for x in stored[ends[sentence] : ends[sentence + 1]]:
                out[sentence, own[x] if x < len(own) else x - len(own)] = 1.0
    return out


def to_idf(has: Array) -> Array:
    """ln(1 + (n - df + .5) / (df + .5)) of each column."""
    n, df = len(has), (has > 0).sum(axis=0)
    result: Array = np.log(1 + (n - df + 0.5) / (df + 0.5))
    return result


def z(x: Array) -> Array:
    """Return standardised values; zeros if the deviation is rounding noise.

    Mean and deviation are those of the values rounded to multiples of 2^-32, which the kernel sums as
    integers. If the values are nearly equal, the rounding is visible.
    """
    rounded = np.rint(x * 2.0**32) / 2.0**32
    deviation = rounded.std()
    return (x - rounded.mean()) / deviation if deviation > 1e-6 else np.zeros_like(x)


def best_first(scores: Array) -> NDArray[np.intp]:
    """Places of scores, the greatest first, of equal ones the first."""
    return np.argsort(-scores, kind="stable")


def round_score(score: Array) -> Array:
    """Return scores rounded to multiples of 2^-30 (about 1e-9)."""
    result: Array = np.rint(score * 2.0**30) / 2.0**30
    return result


def round_mass(mass: Array) -> Array:
    """Return positive numbers rounded to 31 significant bits."""
    bits = np.ascontiguousarray(mass, np.float64).view(np.int64)
    result: Array = ((bits + (1 << 21)) >> 22 << 22).view(np.float64)
    return result


def saturation(links: Arrays) -> Array:
    """tf / (tf + k1 (1 - b + b length / mean length)), units by keywords; k1 = 1.2, b = .75."""
    tf = rows_of(links, "unit_keywords", len(vocabulary(links, "keywords")), "unit_keywords_tf")
    length = links["unit_length"][:, None].astype(float)
    result: Array = tf / (tf + 1.2 * (1 - 0.75 + 0.75 * length / max(float(length.mean()), 1e-9)))
    return result


def bm25(links: Arrays, keywords: list[int], weights: Array | float = 1.0) -> Array:
    """The score of every unit for distinct keyword ids."""
    part = saturation(links)
    result: Array = ((part * to_idf(part))[:, keywords] * weights).sum(axis=1)
    return result


def _step(mass: Array, weights: Array, asked: list[int]) -> Array:
    """Unit -> node -> unit, both in proportion to the weights; nothing passes what was asked for."""
    of_unit = weights.sum(axis=1, keepdims=True)
    # Not by a matrix product: BLAS sums the last rows in another order than the others.
    nodes = (mass[:, None] * (weights / np.where(of_unit == 0, 1, of_unit))).sum(axis=0)
    nodes[asked] = 0
    if nodes.sum() <= 0:
        return np.zeros_like(mass)
    of_node = weights.sum(axis=0)
    result: Array = (weights / np.where(of_node == 0, 1, of_node) * (nodes / nodes.sum())).sum(axis=1)
    return result


def step(links: Arrays, asked: WalkQuestion, mass: Array) -> Array:
    """One step over keywords, names and subjects."""
    part = saturation(links)
    names = rows_of(links, "unit_names", len(vocabulary(links, "names")))
    subjects = rows_of(links, "unit_subjects", len(vocabulary(links, "subjects")))
    arrived = 0.34 * _step(mass, part * to_idf(part), asked.keywords)
    arrived += 0.33 * _step(mass, names * to_idf(names), asked.names)
    arrived += 0.33 * _step(mass, subjects * to_idf(subjects), asked.subjects)
    return arrived


def spread(links: Arrays, asked: WalkQuestion, direct: Array, steps: int = 3) -> Array:
    """The direct match, and the walk of so many steps from the best by it."""
    best = best_first(direct)[:20]
    restart = np.zeros(len(direct))
    restart[best] = np.exp(direct[best] - direct[best[0]])
    restart /= restart.sum()
    mass = restart
    for _ in range(steps):
        mass = 0.5 * restart + 0.5 * step(links, asked, mass)
    return direct + 1.5 * z(np.log(mass + 1e-9))


def linked(a: Array, b: Array, weights: Array) -> Array:
    """How rare the rarest thing is that a row of `a` and a row of `b` have in common: a soft maximum."""
    result: Array = ((a * weights**8) @ b.T) ** 0.125
    return result


def projection(q: Array, p: Array, r: Array) -> Array:
    """Lengths of the projections of q on the planes of a row of `p` and a row of `r`."""
    a, b, c = (p @ q)[:, None], (r @ q)[None, :], np.clip(p @ r.T, -0.98, 0.98)
    result: Array = np.sqrt(np.maximum((a * a + b * b - 2 * a * b * c) / (1 - c * c), 0.0))
    return result


def move_question(
    first_sentence: list[int], pool: list[int], scores: Array, vectors: tuple[Array, Array, Array]
) -> Array:
    """Stage 3: every candidate gains by its nearness to the question moved towards each of the best four."""
    anchors = best_first(scores)[:4]
    gain = np.full(len(pool), -np.inf)
    for k in map(int, anchors):
        own = vectors[1][first_sentence[pool[k]] : first_sentence[pool[k] + 1]]
        # The kernel compares sums of integers: equal sentences of a unit are a tie, which the first one wins.
        nearest = int(np.argmax(np.round(own @ vectors[2], 6))) if len(own) else 0
        towards = 0.5 * own[nearest] if len(own) else 0.0
        moved = vectors[2] + towards
        near = vectors[0][pool] @ (moved / max(float(np.linalg.norm(moved)), 1e-12))
        near -= 0.1 * (scores[anchors[0]] - scores[k])
        near[k] = -np.inf
        gain = np.maximum(gain, near)
    result: Array = scores + 3 * gain
    return result
