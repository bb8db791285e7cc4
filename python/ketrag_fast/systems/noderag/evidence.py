"""Select the input of a generated text: the units and relations of an entity or a community.

If they exceed the prompt, those with the highest sum of neighbour weights come first (NodeRAG, 3.5 and 3.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.kernels.text import count_tokens, unpack
from ketrag_fast.systems.shared.rows import csr, strings
from ketrag_fast.systems.spec.stage import StageContext, StageInputs

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
