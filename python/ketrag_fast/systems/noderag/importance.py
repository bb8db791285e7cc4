"""Important entities: in the core of the graph, or on many shortest paths (NodeRAG, 3.4)."""

from __future__ import annotations

import math

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.systems.noderag.settings import NodeRagSettings
from ketrag_fast.systems.noderag.variants import NodeRules
from ketrag_fast.systems.shared.rows import csr
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

PIVOTS = 10
"""The number of source nodes of shortest paths."""
LEAST_MENTIONS = 2
"""The minimum number of mentions of an important entity."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the important entities in id order, with their scores."""
    nearest = settings.of(NodeRules).entity_rounding == "nearest"
    most = settings.of(NodeRagSettings).max_attributes
    graph = inputs["noderag_graph"]
    edges = csr(graph, "mentions")
    nodes, units = len(edges[0]) - 1, len(graph["unit_weight"])
    entities = graph["entity_weight"]
    place = slice(units, units + len(entities))
    least = core_degree(nodes, len(edges[1]) // 2, nearest=nearest)
    levels = _core.core_numbers(*edges, report=context.report)
    pivots = _core.select_uniform(nodes, min(PIVOTS, nodes), settings.seed, "betweenness")
    between = _core.betweenness(*edges, np.sort(pivots), threads=context.threads, report=context.report)
    scale = math.log10(nodes) if nodes else 0.0
    whole = max(1, round(scale) if nearest else math.floor(scale))
    mean = float(between.sum()) / nodes if nodes else 0.0
    chosen = (levels[place] >= least) | (between[place] > mean * whole)
    chosen &= entities >= LEAST_MENTIONS
    important = np.flatnonzero(chosen)
    if most is not None and len(important) > most:
        strongest = np.lexsort((important, -between[place][important]))[:most]
        important = np.sort(important[strongest])
    return {
        "important": important.astype(np.uint32),
        "core_number": levels.astype(np.uint32),
        "betweenness": np.asarray(between, np.float64),
    }


def core_degree(nodes: int, edges: int, *, nearest: bool = False) -> int:
    """Return `ln |V| * sqrt(mean degree)`, rounded: the minimum degree of the core."""
    if nodes == 0:
        return 1
    value = math.log(nodes) * math.sqrt(2 * edges / nodes)
    return round(value) if nearest else math.floor(value)
