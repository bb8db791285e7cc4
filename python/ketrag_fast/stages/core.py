"""PageRank over the KNN graph and the core chunks (KET-RAG, Alg. 3 lines 6-8; 10-ketrag 1.2 step 6)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """`core` holds the chunks in order of importance: the order in which a language model reads them."""
    scores = _core.pagerank(*csr(inputs["knn"], "graph"), threads=context.threads, report=context.report)
    count = _core.core_count(len(scores), settings.core_ratio)
    if settings.core_selection == "uniform":
        core = _core.select_uniform(len(scores), count, settings.seed, "core")
    else:
        core = _core.select_ranked(scores, count)
    return {"pagerank": np.asarray(scores), "core": np.asarray(core)}


STAGE = Stage(
    "core",
    version=1,
    needs=("knn",),
    settings=("core_ratio", "core_selection", "seed"),
    run=run,
    unit="steps",
)
