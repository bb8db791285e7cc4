"""Attributes: a description of each important entity, from its units and relations (NodeRAG, 3.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import count_tokens, pack, unpack
from ketrag_fast.records import dataclass
from ketrag_fast.systems.papers.noderag.writing import TOKENS, Portrait, writer_of
from ketrag_fast.systems.shared.core_chunks import reading_of
from ketrag_fast.systems.shared.rows import csr, csr_out, strings, strings_out
from ketrag_fast.systems.shared.stored_rows import text_of
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

_KEPT: Final = "attributes"


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Generate missing attributes with the LLM, and return a hash of all attributes."""
    writer = writer_of(context)
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


INPUT = 4_000
"""The approximate maximum number of input tokens for one text."""


@dataclass(frozen=True)
class Statements:
    """Units and relations as texts: `texts[i]` is unit i of the graph, or relation i - number of units; nodes
    of relations are `shift` (the number of entities) higher.

    `strength` is the sum of the weights of each node's neighbours; `sizes` are tokens, 0 for entities.
    """

    texts: Sequence[str]
    sizes: NDArray[np.int64]
    strength: NDArray[np.int64]
    units: int
    shift: int

    def text(self, node: int) -> str:
        """Return the text of a unit or a relation."""
        return self.texts[node if node < self.units else node - self.shift]

    def within(self, nodes: NDArray[np.int64], tokens: int) -> list[int]:
        """Return the ids, ascending, of the strongest units and relations that fit; at least one."""
        order = nodes[np.lexsort((nodes, -self.strength[nodes]))]
        places = np.where(order < self.units, order, order - self.shift)
        total = np.cumsum(self.sizes[places] + 1)
        fitting = max(int(np.searchsorted(total, tokens, "right")), 1)
        return sorted(order[:fitting].tolist())


def statements(inputs: StageInputs, encoding: str, context: StageContext) -> Statements:
    """Return all units and relations of a graph."""
    graph = inputs["noderag_graph"]
    indptr, indices = csr(graph, "mentions")
    weights = np.concatenate([graph["unit_weight"], graph["entity_weight"], graph["relation_weight"]]).astype(
        np.int64
    )
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights[indices])])
    ends = indptr.astype(np.int64)
    texts = [*unpack(*strings(graph, "semantic_unit")), *unpack(*strings(graph, "node_relation"))]
    return Statements(
        texts,
        count_tokens(texts, encoding, context.threads).astype(np.int64),
        total[ends[1:]] - total[ends[:-1]],
        len(graph["unit_weight"]),
        len(graph["entity_weight"]),
    )


def strongest_texts(said: Statements, nodes: NDArray[np.int64], tokens: int) -> str:
    """Return the strongest units in order, which replace a generated text when there is no LLM."""
    units = nodes[nodes < said.units]
    return " ".join(said.text(node) for node in said.within(units, tokens)) if len(units) else ""
