"""hnswlib's graph over vectors of a model: it proposes the nearest, and the core scores them.

Below `ann_from` vectors nothing is made: the scan is as fast there, and exact. Whether hnswlib is there
decides about the result too, so it is a part of the fingerprint wherever it matters.
"""

from __future__ import annotations

from ketrag_fast.base.config import Settings
from ketrag_fast.models.ann.choose import choose, is_hnswlib_installed
from ketrag_fast.models.ann.stored import GRAPH, RECORD, write
from ketrag_fast.storage.arrays import RawFile
from ketrag_fast.systems.spec.stage import Made, StageContext, StageInputs


def kind(count: int, settings: Settings, least: int) -> str:
    """`hnsw` where hnswlib is there, may be taken, and pays; empty for the exact scan, the ordinary case.

    Where the settings name one of the two the answer is empty as well: the settings say it all.
    """
    if settings.ann != "auto" or choose(count, settings.ann, least, is_hnswlib_installed()) == "exact":
        return ""
    return "hnsw"


def propose(inputs: StageInputs, stage: str, vectors: str, settings: Settings, context: StageContext) -> Made:
    """The graph over an array of a stage, and what is known of it; nothing where the scan serves."""
    if "basis" in inputs["vectors"]:  # questions get their vectors in the core, which scans
        return {}
    found, scratch = inputs[stage][vectors], context.scratch
    made = write(found, settings.ann, settings.ann_from, scratch, settings.seed, context.report)
    return {} if made is None else {GRAPH: RawFile(made[0]), RECORD: made[1]}


def kind_of_search(inputs: StageInputs, stage: str, vectors: str, settings: Settings) -> str:
    """What decides beside the settings."""
    return (
        "" if "basis" in inputs["vectors"] else kind(len(inputs[stage][vectors]), settings, settings.ann_from)
    )
