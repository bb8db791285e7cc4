"""What a generated text is made from: the units and relations around an entity, or those of a community.

Where there is more than a model's prompt takes, what has the weightiest neighbours comes first (3.5, 3.7).
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
"""Tokens that a model is given for one text, about."""


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
        """Of a unit or a relation."""
        return self.texts[node if node < self.units else node - self.shift]

    def within(self, nodes: NDArray[np.int64], tokens: int) -> list[int]:
        """The strongest of some units and relations that fit, at least one; ids ascending."""
        order = nodes[np.lexsort((nodes, -self.strength[nodes]))]
        places = np.where(order < self.units, order, order - self.shift)
        total = np.cumsum(self.sizes[places] + 1)
        fitting = max(int(np.searchsorted(total, tokens, "right")), 1)
        return sorted(order[:fitting].tolist())


def statements(inputs: StageInputs, encoding: str, context: StageContext) -> Statements:
    """All units and relations of a graph."""
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


def put_together(said: Statements, nodes: NDArray[np.int64], tokens: int) -> str:
    """The strongest units as they stand, in their order: what stands for a text that no model wrote."""
    units = nodes[nodes < said.units]
    return " ".join(said.text(node) for node in said.within(units, tokens)) if len(units) else ""
