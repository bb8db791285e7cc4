"""hnswlib graphs over a model's vectors propose candidates, which the core scores exactly.

Below `ann_from` vectors no graph is built, because the exact scan is as fast. The result depends on whether
hnswlib is installed, so this is part of the fingerprint when it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.models.ann.choose import choose, is_hnswlib_installed
from ketrag_fast.models.ann.stored import GRAPH, RECORD, write
from ketrag_fast.storage.arrays import RawFile
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.spec.stage import Made, StageContext, StageInputs


def kind(count: int, settings: Settings, least: int) -> str:
    """Return "hnsw" if `ann` is auto, hnswlib is installed and the list is large enough; else ""."""
    if settings.ann != "auto" or choose(count, settings.ann, least, is_hnswlib_installed()) == "exact":
        return ""
    return "hnsw"


def propose(inputs: StageInputs, stage: str, vectors: str, settings: Settings, context: StageContext) -> Made:
    """Return the graph over an array of a stage and its record; nothing if the exact scan is used."""
    if "basis" in inputs["vectors"]:  # fitted vectors: the core embeds the query and scans all rows
        return {}
    found, scratch = listed_vectors(inputs[stage], vectors), context.scratch
    made = write(found, settings.ann, settings.ann_from, scratch, settings.seed, context.report)
    return {} if made is None else {GRAPH: RawFile(made[0]), RECORD: made[1]}


def kind_of_search(inputs: StageInputs, stage: str, vectors: str, settings: Settings) -> str:
    """Return what determines the result of the stage in addition to its settings."""
    if "basis" in inputs["vectors"]:
        return ""
    arrays = inputs[stage]
    count = len(arrays[vectors]) if vectors in arrays else len(StoredVectors.of(arrays, vectors))
    return kind(count, settings, settings.ann_from)


def listed_vectors(arrays: Mapping[str, NDArray[Any]], vectors: str) -> NDArray[np.float32]:
    """Return the vectors of a list in f32: an array, or vectors in any format."""
    return arrays[vectors] if vectors in arrays else StoredVectors.of(arrays, vectors).decode()
