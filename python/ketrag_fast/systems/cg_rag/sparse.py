"""LeSeGR with learned sparse weights instead of BM25."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.cg_rag.candidates import DIRECTIONS, epsilon_of
from ketrag_fast.systems.cg_rag.edge_kinds import ADJACENT, REFERENCE
from ketrag_fast.systems.cg_rag.settings import CgRagSettings
from ketrag_fast.systems.shared.rows import U32, U64, Arrays, csr, lengths
from ketrag_fast.systems.shared.terms import query_terms, unit_terms
from ketrag_fast.systems.spec.system import ChannelQuery


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
