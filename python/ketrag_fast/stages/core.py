"""PageRank over the KNN graph and the core chunks (KET-RAG, Alg. 3 lines 6-8; 10-ketrag 1.2 step 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """`core` holds the chunks in order of importance: the order in which a language model reads them.

    With `core_unit` = subchunk the choice is among units (`core_units`, in that order); a chunk is core if
    one of its units is, and is read whole, at the place of the first.
    """
    knn = inputs["knn"]
    name = "unit_graph" if "unit_graph_indptr" in knn else "graph"
    scores = _core.pagerank(
        *csr(knn, name),
        until="networkx" if settings.core_rank == "networkx" else "tolerance",
        threads=context.threads,
        report=context.report,
    )
    if settings.core_rounding == "down":
        count = int(len(scores) * settings.core_ratio)
    else:
        count = _core.core_count(len(scores), settings.core_ratio)
    if settings.core_selection == "uniform":
        core = _core.select_uniform(len(scores), count, settings.seed, "core")
    else:
        core = _core.select_ranked(scores, count)
    outputs: dict[str, NDArray[Any]] = {"pagerank": np.asarray(scores), "core": np.asarray(core)}
    if settings.core_unit == "subchunk":
        chunks = inputs["units"]["unit_chunk"][core]
        outputs |= {"core": np.asarray(list(dict.fromkeys(chunks.tolist())), np.uint32), "core_units": core}
    return outputs


STAGE = Stage(
    "core",
    version=1,
    needs=("units", "knn"),
    settings=("core_ratio", "core_selection", "core_unit", "core_rounding", "core_rank", "seed"),
    run=run,
    unit="steps",
)
