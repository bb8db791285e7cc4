"""The stages of a build, in the order in which they run."""

from ketrag_fast.stages import core, keywords, knn, links, units, vectors, words

STAGES = (
    units.STAGE,
    words.STAGE,
    links.STAGE,
    vectors.STAGE,
    keywords.STAGE,
    knn.STAGE,
    core.STAGE,
)

__all__ = ["STAGES"]
