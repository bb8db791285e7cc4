"""Attributes: a description of each important entity, from its units and relations (NodeRAG, 3.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack
from ketrag_fast.systems.noderag.evidence import INPUT, Statements, statements, strongest_texts
from ketrag_fast.systems.noderag.writing import TOKENS, Portrait, writer_of
from ketrag_fast.systems.shared.core_chunks import reading_of
from ketrag_fast.systems.shared.row_text import text_of
from ketrag_fast.systems.shared.rows import csr, csr_out, strings_out
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

_KEPT: Final = "attributes"


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Generate missing attributes with the LLM, and return a hash of all attributes."""
    writer = writer_of(settings, context)
    if writer is None:
        return "by rule"
    said = statements(inputs, settings.encoding, context)
    portraits = [
        Portrait(
            text_of(inputs["noderag_graph"], "node_entity", entity),
            tuple(said.text(node) for node in said.within(around, INPUT)),
        )
        for entity, around in _neighbourhoods(inputs)
    ]
    written = writer.written(writer.attribute, portraits, context)
    reading_of(context).scratch[_KEPT] = written
    return hashlib.blake2b(repr(written).encode("utf-8", "replace"), digest_size=32).hexdigest()


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return an attribute for each important entity with any units or relations, in entity order."""
    written: Sequence[str | None] | None = reading_of(context).scratch.pop(_KEPT, None)
    said = statements(inputs, settings.encoding, context)
    graph = inputs["noderag_graph"]
    texts: list[str] = []
    owners: list[int] = []
    chunks: list[NDArray[np.uint32]] = []
    for place, (entity, around) in enumerate(_neighbourhoods(inputs)):
        text = written[place] if written is not None else None
        if text is None:
            text = portrait(text_of(graph, "node_entity", entity), said, around)
        if text:
            texts.append(text)
            owners.append(entity)
            first, last = graph["entity_chunks_indptr"][entity : entity + 2].tolist()
            chunks.append(graph["entity_chunks_indices"][first:last])
    ends = np.cumsum([0, *map(len, chunks)], dtype=np.uint64)
    every = np.concatenate(chunks) if chunks else np.zeros(0, np.uint32)
    return {
        **strings_out("attribute", pack(texts)),
        "attribute_entity": np.array(owners, np.uint32),
        **csr_out("attribute_chunks", (ends, every)),
    }


def portrait(name: str, said: Statements, around: NDArray[np.int64]) -> str:
    """Return an entity's attribute without an LLM: its name, then the strongest units that mention it."""
    text = strongest_texts(said, around, TOKENS)
    return f"{name}: {text}" if text else ""


def _neighbourhoods(inputs: StageInputs) -> list[tuple[int, NDArray[np.int64]]]:
    """Return each important entity with the units and relations linked to it."""
    graph = inputs["noderag_graph"]
    indptr, indices = csr(graph, "mentions")
    shift = len(graph["unit_weight"])
    found = []
    for entity in inputs["noderag_importance"]["important"].tolist():
        first, last = indptr[shift + entity : shift + entity + 2].tolist()
        found.append((entity, indices[first:last].astype(np.int64)))
    return found
