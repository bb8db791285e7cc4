"""A graph for searching the units' vectors, where there are very many and a model made them."""

from __future__ import annotations

from ketrag_fast.backends.ann.stored import GRAPH, RECORD, write
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Made, Stage, StageContext, StageInputs
from ketrag_fast.storage.arrays import RawFile


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Made:
    """Nothing below `ann_from`: the scan is as fast there, and exact."""
    vectors = inputs["vectors"]
    if "basis" in vectors:  # questions get their vectors in the core, which scans
        return {}
    made = write(
        vectors["unit_vectors"],
        settings.ann,
        settings.ann_from,
        context.scratch,
        settings.seed,
        context.report,
    )
    return {} if made is None else {GRAPH: RawFile(made[0]), RECORD: made[1]}


STAGE = Stage(
    "unit_search",
    version=1,
    needs=("vectors",),
    settings=("ann", "ann_from", "seed"),
    run=run,
    unit="vectors",
)
