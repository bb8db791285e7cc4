"""The stages of a build, in the order in which they run."""

from ketrag_fast.stages import (
    core,
    keyword_search,
    keywords,
    knn,
    links,
    unit_search,
    units,
    vectors,
    words,
)

STAGES = (
    units.STAGE,
    words.STAGE,
    links.STAGE,
    vectors.STAGE,
    unit_search.STAGE,
    keywords.STAGE,
    keyword_search.STAGE,
    knn.STAGE,
    core.STAGE,
)

__all__ = ["STAGES"]
