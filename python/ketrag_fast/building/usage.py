"""Exact counts of what a build read and spent, collected when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ketrag_fast.base.config import Settings
from ketrag_fast.models.ann.choose import advice
from ketrag_fast.storage.manifest import StageRecord
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.planning import sizes_of
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.memory_bound import peak_memory
from ketrag_fast.types import Usage

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading


def usage_of(
    tables: Tables,
    stages: Mapping[str, StageRecord],
    source: VectorSource | None,
    reading: Reading | None = None,
) -> Usage:
    """Return the usage of a build: `stages` of its generation, its embedding model and its reader, if any."""
    read = reading.total if reading is not None and reading.reader.model is not None else None
    tally = source.model.tally if source is not None else None
    sizes = sizes_of(stages)
    return Usage(
        documents=tables.count(),
        characters=tables.characters(),
        chunks=sizes.get("chunks", 0),
        core_chunks=sizes.get("core_chunks", 0),
        calls=read.asked if read is not None else 0,
        tokens_in=read.tokens_in if read is not None else 0,
        tokens_out=read.tokens_out if read is not None else 0,
        llm_seconds=read.seconds if read is not None else 0.0,
        embedding_texts=tally.texts if tally is not None else 0,
        embedding_tokens=tally.tokens if tally is not None else 0,
        memory=peak_memory(),
    )


def without_graphs(settings: Settings, stages: Mapping[str, StageRecord], model: bool) -> list[str]:
    """Return advice for each list of vectors for which `auto` would use hnswlib if it were installed."""
    sizes = sizes_of(stages)
    counts: dict[str, dict[str, int]] = {}
    for stage in registry().stages:
        if stage.large is not None and (model or stage.proposes is None):
            what, size, setting = stage.large
            counts.setdefault(setting, {})[what] = sizes.get(size, 0)
    hints = (advice(lists, settings.ann, int(settings.value(name))) for name, lists in counts.items())
    return [hint for hint in hints if hint is not None]
