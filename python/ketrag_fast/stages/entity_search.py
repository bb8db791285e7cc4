"""A graph for searching the entities' vectors, where there are very many and a model made them."""

from __future__ import annotations

from ketrag_fast.pipeline.stage import Stage
from ketrag_fast.stages.proposals import SETTINGS, over

STAGE = Stage(
    "entity_search",
    version=1,
    needs=("vectors", "entities"),
    settings=SETTINGS,
    run=over("entities", "entity_vectors"),
    unit="vectors",
    read=True,
)
