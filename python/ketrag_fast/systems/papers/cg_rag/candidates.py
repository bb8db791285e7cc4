"""The candidates of a query and the edges among them, for the trained LeSeGR (CG-RAG)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.records import dataclass
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.cg_rag import CgRagSettings
from ketrag_fast.systems.shared.links import link_weights
from ketrag_fast.systems.shared.rows import F32, U32, U64, Arrays, lengths
from ketrag_fast.systems.shared.stored_rows import languages_of

ADJACENT, REFERENCE, CITED, CITING = 1, 2, 4, 8
"""From the preceding text, from a referenced text, from a cited document, and from a citing document."""


DIRECTIONS = {
    "cited_to_citing": CITED,
    "citing_to_cited": CITING,
    "both": CITED | CITING,
    "none": 0,
}


EPSILON: Final = 0.6
EPSILON_FITTED: Final = 0.1
"""Default of `epsilon` with a model's vectors, and with fitted vectors, which are less reliable."""


def epsilon_of(settings: CgRagSettings, arrays: Mapping[str, Arrays]) -> float:
    """Return the share of its full message that a text sends if it contains no query term."""
    usual = EPSILON_FITTED if "basis" in arrays["vectors"] else EPSILON
    return usual if settings.lesegr_epsilon is None else settings.lesegr_epsilon


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate units of a query and the edges among them, numbered from 0.

    `units` are ascending; `ranked` (positions among them) can be results, the others only send messages.
    `weights` are the factors of messages by words, `near` the vector similarities; `places` are the numbers
    of the edges in the whole graph.
    """

    units: NDArray[np.int64]
    ranked: U32
    weights: F32
    near: NDArray[np.float64]
    indptr: U64
    indices: U32
    places: NDArray[np.int64]


def by_words(question: str, arrays: Mapping[str, Arrays], epsilon: float) -> NDArray[np.float64]:
    """Return the factor of each unit's messages, from epsilon to 1.

    All are 1 if the index knows no query term.
    """
    links = arrays["links"]
    weights = link_weights(links)
    count = len(weights["unit_norm"])
    times = Counter(_core.lexical_keywords(question, languages=languages_of(links)))
    scores = np.zeros(count)
    for word in sorted(times):
        place = _place(links, word.encode())
        if place is None:
            continue
        row = slice(*links["keyword_units_indptr"][place : place + 2].tolist())
        units, often = links["keyword_units_indices"][row], links["keyword_units_tf"][row].astype(np.float64)
        scores[units] += (
            times[word] * weights["keyword_idf"][place] * often / (often + weights["unit_norm"][units])
        )
    most = scores.max(initial=0.0)
    return epsilon + (1 - epsilon) * scores / most if most > 0 else np.ones(count)


def _place(links: Arrays, word: bytes) -> int | None:
    """Return the row of a word in the keywords, which are sorted by bytes; None if it is not a keyword."""
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
    threads: int = 0,
) -> Candidates:
    """Return the best units by similarity, with and without word weights, and all units that send to them in
    `layers` steps along edges of these kinds (and within documents).
    """
    graph = arrays["citation_graph"]
    weights = by_words(question, arrays, epsilon)
    units, near, ranked, (indptr, indices), places = _core.citation_candidates(
        StoredVectors.of(arrays["vectors"]).in_core,
        np.ascontiguousarray(vector, np.float32),
        weights,
        (graph["edges_indptr"], graph["edges_indices"]),
        graph["edge_kind"],
        best=wanted,
        steps=layers,
        wanted=kinds | ADJACENT | REFERENCE,
        threads=threads,
    )
    return Candidates(
        units=units.astype(np.int64),
        ranked=ranked,
        weights=weights[units].astype(np.float32),
        near=near,
        indptr=indptr,
        indices=indices,
        places=places.astype(np.int64),
    )


def owners_of(found: Candidates) -> NDArray[np.int64]:
    """The receiving unit of each edge, in local numbers."""
    return np.repeat(np.arange(len(found.units)), lengths(found.indptr))


def free_scores(found: Candidates, alphas: F32, share: float, layers: int) -> NDArray[np.float64]:
    """Return the scores of LeSeGR without training, to which the trained network adds.

    Only scores of ranked units equal those in the whole graph, because outer units lack neighbours.
    """
    own = found.weights * found.near
    counts = np.maximum(lengths(found.indptr), 1)
    owners = owners_of(found)
    x = own
    for _ in range(layers):
        sent = np.bincount(owners, alphas * x[found.indices], len(found.units))
        x = own + share * sent / counts
    return x
