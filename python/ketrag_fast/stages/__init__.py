"""The stages of a build, in the order in which they run."""

from ketrag_fast.stages import (
    core,
    entities,
    entity_search,
    keyword_search,
    keywords,
    knn,
    links,
    replies,
    skeleton,
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
    replies.STAGE,
    skeleton.STAGE,
    entities.STAGE,
    entity_search.STAGE,
)

__all__ = ["STAGES"]
