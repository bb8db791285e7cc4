"""Convert the stored decompositions of chunks to arrays (NodeRAG, 3.3).

The result depends on the stored replies, and every build checks whether they changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack
from ketrag_fast.models.extraction.chunk_reader import Chunk
from ketrag_fast.models.extraction.run import Reading
from ketrag_fast.systems.noderag.unit_task import Malformed, decomposition, mending
from ketrag_fast.systems.noderag.units import Decomposition, Relationship
from ketrag_fast.systems.shared.core_chunks import core_chunks, reading_of
from ketrag_fast.systems.shared.rows import strings_out
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

_KEPT: Final = "decompositions"
"""The key under which `look` stores its result for `run`."""
Read = list[tuple[Chunk, Decomposition]]


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Decompose chunks without a stored reply, repair malformed relationships, and hash all replies."""
    reading = reading_of(context)
    chunks = core_chunks(inputs)
    if reading.limit is not None:
        reading.limit.soft = True  # from here on, the time limit stops the reading but not the build
    work = decomposition(reading.reader)
    reading.read(chunks, context.report, work)
    ordered = sorted(chunks)
    items = reading.driver.items(work.task, ordered)
    read = [(chunk, item.values[0]) for chunk, item in zip(ordered, items, strict=True) if item.usable]
    mended, lost = _repair_relationships(read, reading, context)
    failed = sorted(chunk.number for chunk, _ in reading.outcome.failed)
    pending = sorted(chunk.number for chunk in reading.outcome.pending)
    reading.scratch[_KEPT] = mended, lost, failed, pending
    state = hashlib.blake2b(digest_size=32)
    state.update(repr((failed, pending, lost)).encode())
    for chunk, found in mended:
        state.update(repr((chunk.number, found)).encode("utf-8", "replace"))
    return state.hexdigest()


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return one row for each chunk with a usable decomposition, in chunk order."""
    read, lost, failed, pending = reading_of(context).scratch.pop(_KEPT)
    units = [unit for _, found in read for unit in found.units]
    rows = [row for unit in units for row in unit.relationships]
    columns: dict[str, Sequence[str]] = {
        "unit_text": [unit.text for unit in units],
        "unit_entity": [name for unit in units for name in unit.entities],
        "unit_source": [row.source for row in rows],
        "unit_relation": [row.relation for row in rows],
        "unit_target": [row.target for row in rows],
    }
    packed: dict[str, NDArray[Any]] = {}
    for name, texts in columns.items():
        packed |= strings_out(name, pack(texts))
    return {
        "decomposed_chunk": np.array([chunk.number for chunk, _ in read], np.uint32),
        "chunk_units": _ends(len(found.units) for _, found in read),
        "unit_entities": _ends(len(unit.entities) for unit in units),
        "unit_relations": _ends(len(unit.relationships) for unit in units),
        **packed,
        "failed": np.array(failed, np.uint32),
        "pending": np.array(pending, np.uint32),
        "dropped": np.array([lost + sum(found.dropped for _, found in read)], np.uint64),
    }


def _ends(counts: Iterator[int] | Any) -> NDArray[np.uint64]:
    return np.cumsum([0, *counts], dtype=np.uint64)


def _repair_relationships(read: Read, reading: Reading, context: StageContext) -> tuple[Read, int]:
    """Return the decomposition with malformed relationships repaired by the model, or dropped and counted."""
    task = mending(reading.reader.limits.seconds)
    wrong = {
        Malformed(unit.text, unit.entities, text)
        for _, found in read
        for unit in found.units
        for text in unit.malformed
    }
    ordered = sorted(wrong, key=lambda one: (one.unit, one.text, one.entities))
    items = reading.driver.items(task, ordered)
    reading.driver.run(items, context.report)
    known = {one: item.values[0] for one, item in zip(ordered, items, strict=True) if item.usable}
    lost = 0
    out: Read = []
    for chunk, found in read:
        units = []
        for unit in found.units:
            right: list[Relationship] = []
            for text in unit.malformed:
                one = known.get(Malformed(unit.text, unit.entities, text))
                lost += one is None
                right += [] if one is None else [one]
            units.append(unit._replace(relationships=(*unit.relationships, *right), malformed=()))
        out.append((chunk, found._replace(units=tuple(units))))
    return out, lost
