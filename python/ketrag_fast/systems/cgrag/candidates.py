"""The part of the graph that a question is about, for the trained LeSeGR (specs 40, 4.4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.kernels.citations import ADJACENT, CITED, CITING, REFERENCE
from ketrag_fast.stages.rows import F32, U32, U64, Arrays, lengths

DIRECTIONS = {
    "cited_to_citing": CITED,
    "citing_to_cited": CITING,
    "both": CITED | CITING,
    "none": 0,
}


@dataclass(frozen=True, slots=True)
class Candidates:
    """Some units and the edges among them, in local numbers.

    `units` ascend; those that are `ranked` come into question, the others only send messages. `weights` are
    the messages' factors by words, `near` the similarity by vectors; `places` say where each edge stands
    among all edges of the graph.
    """

    units: NDArray[np.int64]
    ranked: NDArray[np.bool_]
    weights: F32
    near: NDArray[np.float64]
    indptr: U64
    indices: U32
    places: NDArray[np.int64]


def by_words(question: str, arrays: Mapping[str, Arrays], epsilon: float) -> NDArray[np.float64]:
    """For every unit what its messages are multiplied by: from epsilon to 1, or 1 where no word is known."""
    links = arrays["links"]
    count = len(links["unit_norm"])
    times = Counter(_core.lexical_keywords(question))
    scores = np.zeros(count)
    for word in sorted(times):
        place = _place(links, word.encode())
        if place is None:
            continue
        row = slice(*links["keyword_units_indptr"][place : place + 2].tolist())
        units, often = links["keyword_units_indices"][row], links["keyword_units_tf"][row].astype(np.float64)
        scores[units] += (
            times[word] * links["keyword_idf"][place] * often / (often + links["unit_norm"][units])
        )
    most = scores.max(initial=0.0)
    return epsilon + (1 - epsilon) * scores / most if most > 0 else np.ones(count)


def _place(links: Arrays, word: bytes) -> int | None:
    """Of a word among the keywords, which are in the order of their bytes."""
    blob, offsets = links["keywords_blob"], links["keywords_offsets"]
    low, high = 0, len(offsets) - 1
    while low < high:
        middle = (low + high) // 2
        row = blob[int(offsets[middle]) : int(offsets[middle + 1])].tobytes()
        if row == word:
            return middle
        low, high = (middle + 1, high) if row < word else (low, middle)
    return None


def candidates(
    question: str,
    vector: F32,
    arrays: Mapping[str, Arrays],
    *,
    wanted: int,
    kinds: int,
    epsilon: float,
    layers: int = 2,
) -> Candidates:
    """The best units by similarity and by similarity times words, and all that sends to them in `layers`
    steps along edges of these kinds (and within documents).
    """
    graph, vectors = arrays["citation_graph"], arrays["vectors"]["unit_vectors"]
    weights = by_words(question, arrays, epsilon)
    near = (vectors @ vector).astype(np.float64)
    best = np.zeros(len(near), np.bool_)
    numbers = np.arange(len(near))
    for scores in (near, weights * near):
        best[np.lexsort((numbers, -scores))[:wanted]] = True
    indptr, indices = graph["edges_indptr"].astype(np.int64), graph["edges_indices"]
    carried = graph["edge_kind"] & np.uint8(kinds | ADJACENT | REFERENCE) != 0
    inside = best.copy()
    frontier = np.flatnonzero(best)
    for _ in range(layers):
        places = _rows(indptr, frontier)[0]
        reached = np.unique(indices[places[carried[places]]])
        frontier = reached[~inside[reached]].astype(np.int64)
        inside[frontier] = True
    units = np.flatnonzero(inside)
    places, owners = _rows(indptr, units)
    kept = carried[places] & inside[indices[places]]
    places, owners = places[kept], owners[kept]
    local = np.zeros(len(near), np.int64)
    local[units] = np.arange(len(units))
    return Candidates(
        units=units,
        ranked=best[units],
        weights=weights[units].astype(np.float32),
        near=near[units],
        indptr=np.searchsorted(owners, np.arange(len(units) + 1)).astype(np.uint64),
        indices=local[indices[places]].astype(np.uint32),
        places=places,
    )


def _rows(indptr: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of some rows, one after the other, and the place of each one's row among them."""
    starts, lengths = indptr[rows], indptr[rows + 1] - indptr[rows]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    owners = np.repeat(np.arange(len(rows)), lengths)
    return np.arange(total) - np.repeat(ends - lengths, lengths) + np.repeat(starts, lengths), owners


def owners_of(found: Candidates) -> NDArray[np.int64]:
    """The unit that each edge leads into, in local numbers."""
    return np.repeat(np.arange(len(found.units)), lengths(found.indptr))


def free_scores(found: Candidates, alphas: F32, share: float, layers: int) -> NDArray[np.float64]:
    """What LeSeGR without training gives these units: what a trained one begins with.

    Neighbours of the outermost ring are not all there, so that only the ranked ones are as in the index.
    """
    own = found.weights * found.near
    counts = np.maximum(lengths(found.indptr), 1)
    owners = owners_of(found)
    x = own
    for _ in range(layers):
        sent = np.bincount(owners, alphas * x[found.indices], len(found.units))
        x = own + share * sent / counts
    return x
