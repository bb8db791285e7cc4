"""What a build read and spent, gathered when it ends: exact counts, no estimates."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ketrag_fast.backends.ann.choose import advice
from ketrag_fast.config import Settings
from ketrag_fast.storage.manifest import StageRecord
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Usage

if TYPE_CHECKING:
    from ketrag_fast.backends.embedders.source import VectorSource
    from ketrag_fast.extraction.run import Reading


def usage_of(
    tables: Tables,
    stages: Mapping[str, StageRecord],
    source: VectorSource | None,
    reading: Reading | None = None,
) -> Usage:
    """`stages` are those of the generation; `source` the embedding model, `reading` the language model's
    work, if there are any.
    """
    read = reading.outcome if reading is not None and reading.reader.model is not None else None
    tally = source.model.tally if source is not None else None
    return Usage(
        documents=tables.count(),
        characters=tables.characters(),
        chunks=_rows(stages, "units", "chunk_document"),
        core_chunks=_rows(stages, "core", "core"),
        calls=read.asked if read is not None else 0,
        tokens_in=read.tokens_in if read is not None else 0,
        tokens_out=read.tokens_out if read is not None else 0,
        llm_seconds=read.seconds if read is not None else 0.0,
        embedding_texts=tally.texts if tally is not None else 0,
        embedding_tokens=tally.tokens if tally is not None else 0,
        memory=peak_memory(),
    )


def _rows(stages: Mapping[str, StageRecord], stage: str, array: str) -> int:
    record = stages.get(stage)
    file = record.files.get(array) if record is not None else None
    return file.shape[0] if file is not None else 0


def without_graphs(settings: Settings, stages: Mapping[str, StageRecord], model: bool) -> list[str]:
    """A word where `auto` would have taken hnswlib, had it been there."""
    questions = {
        "passages": _rows(stages, "vectors", "unit_vectors"),
        "keywords": _rows(stages, "keywords", "vectors"),
    }
    chunks = {"chunks": _rows(stages, "units", "chunk_document")}
    words = (
        advice(questions if model else {}, settings.ann, settings.ann_from),
        advice(chunks, settings.ann, settings.knn_ann_from),
    )
    return [word for word in words if word is not None]


def peak_memory() -> int | None:
    """Most bytes that this process ever had in memory; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
