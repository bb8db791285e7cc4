"""A graph for searching the units' vectors, where there are very many and a model made them."""

from __future__ import annotations

from ketrag_fast.pipeline.stage import Stage
from ketrag_fast.stages.proposals import SETTINGS, over

STAGE = Stage(
    "unit_search",
    version=1,
    needs=("vectors",),
    settings=SETTINGS,
    run=over("vectors", "unit_vectors"),
    unit="vectors",
)
