"""PageRank over the KNN graph, and the core chunks (KET-RAG, Algorithm 3, lines 6-8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.systems.ket_rag.variants import KetRules
from ketrag_fast.systems.shared.rows import csr
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the core chunks, most important first; the reader processes them in this order.

    With the rule `core_unit` = subchunk, units are selected (`core_units`, in order); a chunk is core if one
    of its units is, and takes the position of the first.
    """
    own = settings.of(KetRules)
    knn = inputs["knn"]
    name = "unit_graph" if "unit_graph_indptr" in knn else "graph"
    scores = _core.pagerank(
        *csr(knn, name),
        until="networkx" if own.core_rank == "networkx" else "tolerance",
        threads=context.threads,
        report=context.report,
    )
    core = _core.select_ranked(scores, core_count(len(scores), settings))
    return {"pagerank": np.asarray(scores), **core_chunks(core, inputs, settings)}


def uniform(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return randomly selected core chunks (KET-RAG-U), which needs no graph."""
    units = inputs["units"]
    nodes = "unit_chunk" if settings.of(KetRules).core_unit == "subchunk" else "chunk_document"
    count = len(units[nodes])
    return core_chunks(
        _core.select_uniform(count, core_count(count, settings), settings.seed, "core"), inputs, settings
    )


def core_count(nodes: int, settings: Settings) -> int:
    """Return the number of core nodes."""
    if settings.of(KetRules).core_rounding == "down":
        return int(nodes * settings.core_ratio)
    return _core.core_count(nodes, settings.core_ratio)


def core_chunks(core: NDArray[np.uint32], inputs: StageInputs, settings: Settings) -> dict[str, NDArray[Any]]:
    """Return the selected nodes as core chunks."""
    if settings.of(KetRules).core_unit != "subchunk":
        return {"core": np.asarray(core)}
    chunks = inputs["units"]["unit_chunk"][core]
    return {"core": np.asarray(list(dict.fromkeys(chunks.tolist())), np.uint32), "core_units": core}
