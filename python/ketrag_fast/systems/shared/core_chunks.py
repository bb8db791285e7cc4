"""The core chunks of a graph, in the form that an LLM or another reader processes."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import InternalError
from ketrag_fast.kernels.text import unpack
from ketrag_fast.models.extraction.chunk_reader import Chunk
from ketrag_fast.models.extraction.run import Reading
from ketrag_fast.systems.shared.rows import strings
from ketrag_fast.systems.spec.stage import StageContext, StageInputs


def core_chunks(inputs: StageInputs) -> list[Chunk]:
    """Return the core chunks, most important first, with their spans in code points."""
    units, order = inputs["units"], inputs["core"]["core"]
    owners = units["chunk_document"][order]
    texts = _core.slice_strings(inputs.documents.packed("text"), owners, units["chunk_bytes"][order])
    first = units["chunk_units"][:-1][order].astype(np.int64)
    last = units["chunk_units"][1:][order].astype(np.int64) - 1
    starts, ends = units["unit_span"][first, 0], units["unit_span"][last, 1]
    parts = (
        order.tolist(),
        unpack(*_core.take_strings(strings(units, "document_ids"), owners)),
        starts.tolist(),
        ends.tolist(),
        unpack(*_core.take_strings(strings(units, "document_titles"), owners)),
        unpack(*texts),
    )
    return [Chunk(*row) for row in zip(*parts, strict=True)]


def reading_of(context: StageContext) -> Reading:
    """Return the reader of this build; stages with `reads` run only if there is one."""
    if context.reading is None:
        raise InternalError("this build has no reader")
    return context.reading
