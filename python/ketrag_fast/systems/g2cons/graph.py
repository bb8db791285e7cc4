"""The concept graph, and the core chunks that it selects (G2ConS, sections 3 and 4)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.systems.g2cons.settings import G2ConsSettings
from ketrag_fast.systems.shared.rows import csr, csr_out
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the concept graph: edges between concepts that share enough chunks and have close vectors."""
    own = settings.of(G2ConsSettings)
    concepts = inputs["concepts"]
    rows = csr(concepts, "chunk_concepts")
    edges, shared, cosines, weights, threshold = _core.concept_graph(
        *rows,
        concepts["vectors"],
        theta_co=own.theta_co,
        theta_sem=own.theta_sem,
        threads=context.threads,
        report=context.report,
    )
    return {
        **csr_out("edges", edges),
        "edge_shared": shared,
        "edge_cosine": cosines,
        "edge_weight": weights,
        "threshold": np.array([threshold]),
    }


def core(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the core chunks, most important first; the reader processes them in this order."""
    concepts, graph = inputs["concepts"], inputs["concept_graph"]
    edges = csr(graph, "edges")
    ranks = _core.pagerank(*edges, graph["edge_weight"], threads=context.threads, report=context.report)
    chunks = len(inputs["units"]["chunk_document"])
    count = _core.core_count(chunks, settings.core_ratio)
    rows = csr(concepts, "chunk_concepts")
    chosen = _core.select_by_concepts(*rows, ranks, count, report=context.report)
    return {"core": chosen, "concept_rank": ranks}
