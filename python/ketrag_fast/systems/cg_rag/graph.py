"""The contextual citation graph (CG-RAG): which texts send messages to which, and their similarity."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.cg_rag.edge_kinds import ADJACENT, CITED, CITING, REFERENCE
from ketrag_fast.systems.cg_rag.sparse import unit_weights
from ketrag_fast.systems.shared.link_weights import link_weights
from ketrag_fast.systems.shared.rows import U64, Arrays, csr, csr_out, lengths, offsets_of, unit_owners
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

Ids = NDArray[np.int64]
Values = NDArray[np.float64]
Edges = tuple[Ids, Ids, int, Values, Values]
"""(receiver, sender, kind, relevance, dot product)."""
PASSAGES: Final = 4
"""The number of texts of a cited document that each text of the citing one is linked to."""
_BOTH: Final = ((CITED, False), (CITING, True))


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Merge parallel edges into one with all their kinds and the largest relevance."""
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
            senders = _core.transpose(*cites, len(cites[0]) - 1, threads=context.threads)
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
    """Return the identity of the embedder; for the fitted space, a hash of its basis."""
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
    """Return the edges by receiver, then sender, without loops. Alphas are cosines from 0 to 1."""
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
