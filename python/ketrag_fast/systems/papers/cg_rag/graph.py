"""The citation graph of units, `cg-rag-sparse`, and the neighbourhood that an answer reads (CG-RAG)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.cg_rag import CgRagSettings
from ketrag_fast.systems.papers.cg_rag.candidates import (
    ADJACENT,
    CITED,
    CITING,
    DIRECTIONS,
    REFERENCE,
    by_words,
    epsilon_of,
)
from ketrag_fast.systems.shared.links import link_weights
from ketrag_fast.systems.shared.rows import U32, U64, Arrays, csr, csr_out, lengths, offsets_of, unit_owners
from ketrag_fast.systems.shared.terms import query_terms, unit_terms
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs
from ketrag_fast.systems.spec.system import ChannelQuery

Ids = NDArray[np.int64]
Values = NDArray[np.float64]
Edges = tuple[Ids, Ids, int, Values, Values]
"""Arrays of edges: receiver, sender, kind, relevance, dot product."""
PASSAGES: Final = 4
"""Number of texts of a cited document to which each text of the citing document is linked."""
_BOTH: Final = ((CITED, False), (CITING, True))


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Build the graph; parallel edges become one edge with all their kinds and the largest relevance."""
    units, vectors = inputs["units"], StoredVectors.of(inputs["vectors"]).decode()
    count = len(units["unit_tokens"])
    cites = csr(inputs["citations"], "cites")
    first = offsets_of(unit_owners(units), len(cites[0]) - 1)
    parts = [
        _nearest_edges(*own_edges, vectors, context)
        for own_edges in (_adjacent(units), _references(inputs["citations"]))
    ]
    if settings.sparse_model is None:
        words, weights, vocabulary = _words(inputs["links"])
    else:
        terms = inputs["terms"]
        words, weights = unit_weights(terms, count)
        vocabulary = len(terms["term_units_indptr"]) - 1
    for kind, turned in _BOTH:
        senders = cites
        if turned:
            senders = _core.transpose(*cites, len(cites[0]) - 1)
        edges, relevance, near = _core.citation_links(
            first,
            vectors,
            words,
            vocabulary,
            weights,
            senders,
            PASSAGES,
            threads=context.threads,
            report=context.report,
        )
        receivers = np.repeat(np.arange(count), lengths(edges[0]))
        parts.append((receivers, edges[1].astype(np.int64), kind, relevance, near))
    receiver, sender, kinds, relevance, alphas = _merge_edges(parts, count)
    rows = offsets_of(receiver.astype(np.uint32), count)
    return {
        **csr_out("edges", (rows, sender.astype(np.uint32))),
        "edge_kind": kinds,
        "edge_alpha": alphas,
        "edge_relevance": relevance,
        "embedder": np.frombuffer(_embedder(inputs["vectors"], context).encode(), np.uint8),
    }


def _embedder(vectors: Arrays, context: StageContext) -> str:
    """Return the identity of the embedding model; for fitted vectors, a hash of their basis."""
    if context.model is not None:
        return context.model.fingerprint
    return f"builtin {hashlib.sha256(np.ascontiguousarray(vectors['basis']).tobytes()).hexdigest()}"


def _adjacent(units: Arrays) -> tuple[Ids, Ids, int]:
    """Return edges from each text to the next one of its document."""
    document = unit_owners(units)
    later = np.flatnonzero(document[1:] == document[:-1]) + 1
    return later, later - 1, ADJACENT


def _references(citations: Arrays) -> tuple[Ids, Ids, int]:
    indptr, indices = csr(citations, "references")
    receivers = np.repeat(np.arange(len(indptr) - 1), lengths(indptr))
    return receivers, indices.astype(np.int64), REFERENCE


def _nearest_edges(
    receivers: Ids, senders: Ids, kind: int, vectors: NDArray[np.float32], context: StageContext
) -> Edges:
    """Return edges with relevance 1, by ascending receiver."""
    rows = offsets_of(receivers.astype(np.uint32), len(vectors)), senders.astype(np.uint32)
    near = _core.edge_alphas(rows, vectors, threads=context.threads)
    return receivers, senders, kind, np.ones(len(receivers)), near.astype(np.float64)


def _words(links: Arrays) -> tuple[tuple[U64, Any], NDArray[np.float64], int]:
    """Return the keywords of each text with BM25 weights, scaled to unit length."""
    indptr, indices = csr(links, "unit_keywords")
    counts = links["unit_keywords_tf"].astype(np.float64)
    owner = np.repeat(np.arange(len(indptr) - 1), lengths(indptr))
    known = link_weights(links)
    weights = known["keyword_idf"][indices] * counts / (counts + known["unit_norm"][owner])
    size = np.sqrt(np.bincount(owner, weights**2, len(indptr) - 1))
    scaled = weights / np.where(size > 0, size, 1.0)[owner]
    return (indptr, indices), scaled, len(known["keyword_idf"])


def _merge_edges(
    parts: list[Edges], count: int
) -> tuple[Ids, Ids, NDArray[np.uint8], Values, NDArray[np.float32]]:
    """Merge edges and sort them by receiver, then sender; loops are dropped.

    Alphas are cosines from 0 to 1.
    """
    receiver = np.concatenate([part[0] for part in parts])
    sender = np.concatenate([part[1] for part in parts])
    kinds = np.concatenate([np.full(len(part[0]), part[2], np.uint8) for part in parts])
    relevance = np.concatenate([part[3] for part in parts])
    near = np.concatenate([part[4] for part in parts])
    apart = np.flatnonzero(receiver != sender)
    order = apart[np.argsort(receiver[apart] * max(count, 1) + sender[apart], kind="stable")]
    receiver, sender = receiver[order], sender[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (receiver[1:] != receiver[:-1]) | (sender[1:] != sender[:-1])
    first = np.flatnonzero(fresh)
    if not len(first):
        nothing = np.zeros(0)
        return receiver, sender, kinds[order], nothing, nothing.astype(np.float32)
    return (
        receiver[first],
        sender[first],
        np.bitwise_or.reduceat(kinds[order], first),
        np.maximum.reduceat(relevance[order], first),
        np.clip(near[order][first], 0.0, 1.0).astype(np.float32),
    )


def lacks(settings: Settings) -> str | None:
    """Return what the mode lacks outside the index; None if nothing."""
    return None if settings.sparse_model is not None else "a sparse encoder (-o sparse_model=NAME_OR_PATH)"


def unit_weights(terms: Arrays, units: int) -> tuple[tuple[U64, U32], NDArray[np.float64]]:
    """Return the terms of each unit, scaled to unit length."""
    rows, weights = unit_terms(terms, units)
    owner = np.repeat(np.arange(units), lengths(rows[0]))
    size = np.sqrt(np.bincount(owner, weights**2, units))
    return rows, weights / np.where(size > 0, size, 1.0)[owner]


def by_terms(
    settings: Settings, question: str, terms: Arrays, units: int, epsilon: float
) -> NDArray[np.float64]:
    """Return the factor of each unit's messages: from epsilon to 1; 1 if no term is shared."""
    ids, own = query_terms(settings, terms, [question])[0]
    weights = np.zeros(len(terms["term_units_indptr"]) - 1)
    weights[ids] = own
    indptr, indices = csr(terms, "term_units")
    each = np.repeat(weights, lengths(indptr))
    scores = np.bincount(indices, each * terms["term_impacts"], units)
    most = scores.max(initial=0.0)
    return epsilon + (1 - epsilon) * scores / most if most > 0 else np.ones(units)


def rank(query: ChannelQuery, arrays: Mapping[str, Arrays]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rank units as the channel cg-rag does, with these weights."""
    assert query.vector is not None  # noqa: S101 - the channel asks for it
    if not query.vector.any():
        return np.zeros(0, np.int64), np.zeros(0)
    own = query.settings.of(CgRagSettings)
    graph = arrays["citation_graph"]
    stored = StoredVectors.of(arrays["vectors"])
    weights = by_terms(query.settings, query.question, arrays["terms"], len(stored), epsilon_of(own, arrays))
    near = stored.scores(query.vector)
    scores = _core.pass_messages(
        (graph["edges_indptr"], graph["edges_indices"]),
        graph["edge_kind"],
        graph["edge_alpha"],
        weights,
        near,
        share=own.lesegr_share,
        wanted=DIRECTIONS[own.citation_direction] | ADJACENT | REFERENCE,
    )
    order = np.lexsort((np.arange(len(scores)), -scores))[: query.wanted]
    return order, scores[order]


def strongest_senders(
    query: ChannelQuery, arrays: Mapping[str, Arrays], units: Sequence[int]
) -> list[list[int]]:
    """Return the senders of each unit, strongest first: by alpha times their word factor, then by id.

    With direction `both` the receivers are included.
    """
    given = query.settings.of(CgRagSettings)
    graph = arrays["citation_graph"]
    wanted = DIRECTIONS[given.citation_direction] | ADJACENT | REFERENCE
    weights = by_words(query.question, arrays, epsilon_of(given, arrays))
    indptr, indices = graph["edges_indptr"], graph["edges_indices"]
    found = []
    for unit in units:
        first, last = indptr[unit : unit + 2].tolist()
        places = np.arange(first, last)
        others = indices[places].astype(np.int64)
        if given.citation_direction == "both":
            out = np.flatnonzero(indices == unit)
            places = np.concatenate([places, out])
            heard = np.searchsorted(indptr.astype(np.int64), out, side="right") - 1
            others = np.concatenate([others, heard])
        carried = graph["edge_kind"][places] & np.uint8(wanted) != 0
        places, others = places[carried], others[carried]
        strength = graph["edge_alpha"][places].astype(np.float64) * weights[others]
        order = np.lexsort((others, -strength))
        found.append(list(dict.fromkeys(others[order].tolist())))
    return found
