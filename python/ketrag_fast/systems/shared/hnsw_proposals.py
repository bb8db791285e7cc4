"""hnswlib graphs over a model's vectors propose candidates, which the core scores exactly.

Below `ann.LARGE` vectors no graph is built, because the exact scan is as fast. The result depends on whether
hnswlib is installed, so this is part of the fingerprint when it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.models.ann import GRAPH, RECORD, choose, write
from ketrag_fast.storage.arrays import RawFile
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.spec.stage import Made, StageContext, StageInputs


def kind(count: int, settings: Settings) -> str:
    """Return "hnsw" if `ann` is auto, hnswlib is installed and the list is large enough; else ""."""
    if settings.ann != "auto" or choose(count, settings.ann) == "exact":
        return ""
    return "hnsw"


def propose(inputs: StageInputs, stage: str, vectors: str, settings: Settings, context: StageContext) -> Made:
    """Return the graph over an array of a stage and its record; nothing if the exact scan is used."""
    if "basis" in inputs["vectors"]:  # fitted vectors: the core embeds the query and scans all rows
        return {}
    arrays = inputs[stage]
    count, _ = listed_shape(arrays, vectors)
    if not count or choose(count, settings.ann) == "exact":
        return {}
    rows = arrays[vectors] if vectors in arrays else StoredVectors.of(arrays, vectors).decode()
    path, record = write(rows, context.scratch, settings.seed, context.report)
    return {GRAPH: RawFile(path), RECORD: record}


def kind_of_search(inputs: StageInputs, stage: str, vectors: str, settings: Settings) -> str:
    """Return what determines the result of the stage in addition to its settings."""
    if "basis" in inputs["vectors"]:
        return ""
    return kind(listed_shape(inputs[stage], vectors)[0], settings)


def listed_shape(arrays: Mapping[str, NDArray[Any]], vectors: str) -> tuple[int, int]:
    """Return the number and the dimension of the vectors of a list: an array, or vectors in any format."""
    if vectors in arrays:
        return len(arrays[vectors]), arrays[vectors].shape[1]
    stored = StoredVectors.of(arrays, vectors)
    return len(stored), stored.dimension
