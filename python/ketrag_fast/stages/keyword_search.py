"""A graph for searching the keywords' vectors, where there are very many and a model made them."""

from __future__ import annotations

from ketrag_fast.pipeline.stage import Stage
from ketrag_fast.stages.proposals import SETTINGS, over

STAGE = Stage(
    "keyword_search",
    version=1,
    needs=("vectors", "keywords"),
    settings=SETTINGS,
    run=over("keywords", "vectors"),
    unit="vectors",
)
