"""LeSeGR with learned sparse weights instead of BM25: a stage and a mode."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ModelMismatch
from ketrag_fast.kernels.text import unpack
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.cg_rag.candidates import DIRECTIONS, epsilon_of
from ketrag_fast.systems.cg_rag.edge_kinds import ADJACENT, REFERENCE
from ketrag_fast.systems.cg_rag.settings import CgRagSettings
from ketrag_fast.systems.shared.rows import Arrays, csr, csr_out, lengths, strings
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs
from ketrag_fast.systems.spec.system import ChannelQuery

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.sparse import SparseModel

_lock = Lock()
_opened: list[SparseModel] = []
"""The encoder used last: a process usually serves indexes of one model."""


def lacks(settings: Settings) -> str | None:
    """Return what the mode lacks outside the index; None if nothing."""
    given = settings.of(CgRagSettings).sparse_model
    return None if given is not None else "a sparse encoder (-o sparse_model=sentence-transformers:FOLDER)"


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return a hash of the model's files, wherever they are stored."""
    from ketrag_fast.models.embedders.sparse import fingerprint

    spec = settings.of(CgRagSettings).sparse_model
    return "" if spec is None else fingerprint(spec)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the term weights of every unit, encoded after the title of its document."""
    spec = settings.of(CgRagSettings).sparse_model
    assert spec is not None  # noqa: S101 - only a mode with a sparse encoder needs this stage
    units = inputs["units"]
    titles = unpack(*strings(units, "document_titles"))
    texts = unpack(*strings(units, "unit_texts"))
    owners = units["unit_document"].tolist()
    titled = [f"{titles[of]}\n{text}" if titles[of] else text for of, text in zip(owners, texts, strict=True)]
    model = _model(spec)
    indptr, ids, weights = model.rows(titled, "document", context.report)
    return {
        **csr_out("terms", (indptr, ids)),
        "term_weight": weights,
        "term_units": np.bincount(ids, minlength=model.terms).astype(np.uint32),
        "model": np.frombuffer(model.fingerprint.encode(), np.uint8),
    }


def unit_weights(sparse: Arrays) -> tuple[tuple[NDArray[np.uint64], NDArray[np.uint32]], NDArray[np.float64]]:
    """Return the terms of each unit, scaled to unit length."""
    indptr, indices = csr(sparse, "terms")
    weights = sparse["term_weight"].astype(np.float64)
    owner = np.repeat(np.arange(len(indptr) - 1), lengths(indptr))
    size = np.sqrt(np.bincount(owner, weights**2, len(indptr) - 1))
    return (indptr, indices), weights / np.where(size > 0, size, 1.0)[owner]


def by_terms(settings: Settings, question: str, sparse: Arrays, epsilon: float) -> NDArray[np.float64]:
    """Return the factor of each unit's messages: from epsilon to 1; 1 if no term is shared."""
    spec = settings.of(CgRagSettings).sparse_model
    model = _model(spec or "")
    if model.fingerprint.encode() != sparse["model"].tobytes():
        raise ModelMismatch(
            f"{spec} is not the sparse encoder that the index was built with",
            hint="give the one that built it, or build again: ketrag index -o sparse_model=...",
        )
    _, ids, own = model.rows([question], "query")
    asked = np.zeros(len(sparse["term_units"]))
    asked[ids] = own
    indptr, indices = csr(sparse, "terms")
    owner = np.repeat(np.arange(len(indptr) - 1), lengths(indptr))
    scores = np.bincount(owner, asked[indices] * sparse["term_weight"], len(indptr) - 1)
    most = scores.max(initial=0.0)
    found: NDArray[np.float64] = (
        epsilon + (1 - epsilon) * scores / most if most > 0 else np.ones(len(indptr) - 1)
    )
    return found


def rank(query: ChannelQuery, arrays: Mapping[str, Arrays]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rank units as the channel cg-rag does, with these weights."""
    assert query.vector is not None  # noqa: S101 - the channel asks for it
    if not query.vector.any():
        return np.zeros(0, np.int64), np.zeros(0)
    own = query.settings.of(CgRagSettings)
    graph = arrays["citation_graph"]
    weights = by_terms(query.settings, query.question, arrays["citation_sparse"], epsilon_of(own, arrays))
    near = StoredVectors.of(arrays["vectors"]).scores(query.vector)
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


def _model(spec: str) -> SparseModel:
    from ketrag_fast.models.embedders.sparse import SparseModel

    with _lock:
        if not _opened or _opened[0].spec != spec:
            _opened[:] = [SparseModel(spec)]
        return _opened[0]
