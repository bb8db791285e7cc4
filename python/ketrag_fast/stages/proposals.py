"""A graph over vectors of a model that proposes the nearest of them: the stages differ in whose."""

from __future__ import annotations

from collections.abc import Callable

from ketrag_fast.backends.ann.stored import GRAPH, RECORD, write
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Made, StageContext, StageInputs
from ketrag_fast.storage.arrays import RawFile


def over(stage: str, array: str) -> Callable[[StageInputs, Settings, StageContext], Made]:
    """A stage's function over `array` of another stage. It makes nothing below `ann_from`: the scan is as
    fast there, and exact.
    """

    def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Made:
        if "basis" in inputs["vectors"]:  # questions get their vectors in the core, which scans
            return {}
        vectors, scratch = inputs[stage][array], context.scratch
        made = write(vectors, settings.ann, settings.ann_from, scratch, settings.seed, context.report)
        return {} if made is None else {GRAPH: RawFile(made[0]), RECORD: made[1]}

    return run


SETTINGS = ("ann", "ann_from", "seed")
