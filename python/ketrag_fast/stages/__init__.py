"""The stages of a build, in the order in which they run."""

from ketrag_fast.stages import (
    core,
    entities,
    keywords,
    knn,
    links,
    replies,
    skeleton,
    units,
    vectors,
    words,
)

STAGES = (
    units.STAGE,
    words.STAGE,
    links.STAGE,
    vectors.STAGE,
    keywords.STAGE,
    knn.STAGE,
    core.STAGE,
    replies.STAGE,
    skeleton.STAGE,
    entities.STAGE,
)

__all__ = ["STAGES"]
