"""Convert the stored LLM replies about the core chunks to arrays, one row per chunk with a usable reply.

Chunks are read in order of importance; rows are in chunk order. The result depends on the stored replies, and
every build checks whether they changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack
from ketrag_fast.models.extraction.parse import PARSER
from ketrag_fast.models.extraction.run import Reading, write_recording
from ketrag_fast.systems.papers.ket_rag import KetRagSettings
from ketrag_fast.systems.shared.core_chunks import core_chunks, reading_of
from ketrag_fast.systems.shared.rows import strings_out
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Read the chunks without a stored reply, and return a hash of all stored replies."""
    reading = reading_of(context)
    chunks = core_chunks(inputs)
    if reading.limit is not None:
        reading.limit.soft = True  # from here on, the time limit stops the reading but not the build
    reading.read(chunks, context.report)
    state = hashlib.blake2b(digest_size=32)
    reader = reading.reader
    state.update(f"{reader.key} {PARSER} {reader.options.gleanings} {reader.grounded}".encode())
    ordered = sorted(chunks)
    names = [reader.name(chunk) for chunk in ordered]
    for place, rows in reading.journal.rows(reading.number, names):
        state.update(f"\n{ordered[place].number} {len(rows)}".encode())
        for row in rows:
            parts = (row.turn, row.attempt, row.finish, row.verdict, len(row.text))
            state.update(repr(parts).encode() + row.text.encode("utf-8", "replace"))
    state.update(repr(_numbers(reading)).encode())
    record = settings.of(KetRagSettings).record
    if record is not None:
        write_recording(Path(record), reading, chunks)
    return state.hexdigest()


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Parse every stored reply again, and return the records."""
    reading = reading_of(context)
    chunks = sorted(core_chunks(inputs))
    names = [reading.reader.name(chunk) for chunk in chunks]
    columns: dict[str, list[str]] = {name: [] for name in (*_ENTITY, *_RELATION)}
    numbers, strengths, entity_ends, relation_ends = [], [], [0], [0]
    dropped = 0
    for place, rows in reading.journal.rows(reading.number, names):
        found = reading.reader.extraction(rows, chunks[place])
        if found is None:
            continue
        numbers.append(chunks[place].number)
        dropped += found.dropped
        for entity in found.entities:
            for name, value in zip(_ENTITY, entity, strict=True):
                columns[name].append(value)
        for relation in found.relations:
            for name, value in zip(_RELATION, relation[:3], strict=True):
                columns[name].append(value)
            strengths.append(relation.strength)
        entity_ends.append(len(columns[_ENTITY[0]]))
        relation_ends.append(len(columns[_RELATION[0]]))
    failed, pending = _numbers(reading)
    packed: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        packed |= strings_out(name, pack(values))
    return {
        "reply_chunk": np.array(numbers, np.uint32),
        "reply_entities_indptr": np.array(entity_ends, np.uint64),
        "reply_relations_indptr": np.array(relation_ends, np.uint64),
        **packed,
        "relation_strength": np.array(strengths, np.float64),
        "reply_failed": np.array(failed, np.uint32),
        "reply_pending": np.array(pending, np.uint32),
        "reply_dropped": np.array([dropped], np.uint64),
    }


def _numbers(reading: Reading) -> tuple[list[int], list[int]]:
    """Return the failed and the pending chunks, ascending."""
    outcome = reading.outcome
    failed = sorted(chunk.number for chunk, _ in outcome.failed)
    return failed, sorted(chunk.number for chunk in outcome.pending)


_ENTITY = ("entity_name", "entity_type", "entity_description")
_RELATION = ("relation_source", "relation_target", "relation_description")
