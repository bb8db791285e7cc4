"""What a build read and spent, gathered when it ends: exact counts, no estimates."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ketrag_fast.storage.manifest import StageRecord
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Usage

if TYPE_CHECKING:
    from ketrag_fast.backends.embedders.source import VectorSource


def usage_of(tables: Tables, stages: Mapping[str, StageRecord], source: VectorSource | None) -> Usage:
    """`stages` are those of the generation; `source` the embedding model, if there is one."""
    tally = source.model.tally if source is not None else None
    return Usage(
        documents=tables.count(),
        characters=tables.characters(),
        chunks=rows_of(stages, "units", "chunk_document"),
        core_chunks=rows_of(stages, "core", "core"),
        embedding_texts=tally.texts if tally is not None else 0,
        embedding_tokens=tally.tokens if tally is not None else 0,
        memory=peak_memory(),
    )


def rows_of(stages: Mapping[str, StageRecord], stage: str, array: str) -> int:
    """Rows of an array; 0 where there is none."""
    record = stages.get(stage)
    file = record.files.get(array) if record is not None else None
    return file.shape[0] if file is not None else 0


def peak_memory() -> int | None:
    """Most bytes that this process ever had in memory; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
