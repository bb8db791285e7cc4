"""Units, entities and relations as nodes of a graph, each with its chunks (NodeRAG, 3.3).

Ids are assigned in order of first occurrence: by chunk, then by unit in the decomposition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.papers.noderag import NodeRules
from ketrag_fast.systems.papers.noderag.units import key_of
from ketrag_fast.systems.shared.rows import csr, csr_out, strings, strings_out
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

Pairs = Counter[tuple[int, int]]
TOLD = "; "
"""Separates the texts of a relation from several units."""
_STEP = 1000


class Nodes:
    """Nodes of one type by key, with their number of occurrences and their chunks."""

    def __init__(self) -> None:
        self.ids: dict[Any, int] = {}
        self.weights: list[int] = []
        self.chunks: list[list[int]] = []

    def see(self, key: Any, chunk: int, weight: int = 1) -> tuple[int, bool]:
        """Return (id, whether it is new). `weight` is added at each further occurrence."""
        found = self.ids.setdefault(key, len(self.weights))
        new = found == len(self.weights)
        if new:
            self.weights.append(1)
            self.chunks.append([chunk])
        else:
            self.weights[found] += weight
            if self.chunks[found][-1] != chunk:
                self.chunks[found].append(chunk)
        return found, new


class Heterograph:
    """The graph under construction. A repeated relation adds weight and links (`weigh`), or only its text."""

    def __init__(self, *, weigh: bool) -> None:
        self._weigh = weigh
        self.units, self.entities, self.relations = Nodes(), Nodes(), Nodes()
        self.told: list[dict[str, None]] = []
        self.ends: list[tuple[int, int]] = []
        self.unit_entity: Pairs = Counter()

    def add(
        self, chunk: int, text: str, names: Iterable[str], triples: Iterable[tuple[str, str, str]]
    ) -> None:
        """Add a semantic unit of a chunk."""
        unit, _ = self.units.see(text, chunk)
        members = [self.entities.see(key, chunk)[0] for key in map(key_of, names) if key]
        for source, relation, target in triples:
            first, last = key_of(source), key_of(target)
            if not first or not last:
                continue
            ends = []
            for key in (first, last):
                new = key not in self.entities.ids
                # An end that is not in a unit's entities becomes an entity of this unit.
                ends.append(self.entities.see(key, chunk)[0] if new else self.entities.ids[key])
                members += [ends[-1]] if new else []
            pair = (min(ends), max(ends))
            number, new = self.relations.see(pair, chunk, int(self._weigh))
            if new:
                self.told.append({})
                self.ends.append((ends[0], ends[1]))
            elif self._weigh:
                members += [end for end in dict.fromkeys(ends) if end not in members]
            self.told[number][f"{source} {relation} {target}"] = None
        self.unit_entity.update((unit, member) for member in members)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return all nodes and edges of the decompositions, without calling a model."""
    graph = Heterograph(weigh=settings.of(NodeRules).relation_repeats == "weigh")
    kept = inputs["decompositions"]
    texts, names = unpack(*strings(kept, "unit_text")), unpack(*strings(kept, "unit_entity"))
    triples = list(
        zip(
            *(unpack(*strings(kept, f"unit_{part}")) for part in ("source", "relation", "target")),
            strict=True,
        )
    )
    named, told = (
        list(pairwise(kept["unit_entities"].tolist())),
        list(pairwise(kept["unit_relations"].tolist())),
    )
    chunks = kept["decomposed_chunk"].tolist()
    for place, (first, last) in enumerate(pairwise(kept["chunk_units"].tolist())):
        for unit in range(first, last):
            (a, b), (c, d) = named[unit], told[unit]
            graph.add(chunks[place], texts[unit], names[a:b], triples[c:d])
        if place % _STEP == 0:
            context.report(place, len(chunks))
            context.check()
    return whole_graph(graph)


def whole_graph(graph: Heterograph) -> Outputs:
    """Return the graph as arrays."""
    s, n, r = len(graph.units.weights), len(graph.entities.weights), len(graph.relations.weights)
    edges = [(unit, s + entity, count) for (unit, entity), count in graph.unit_entity.items()]
    edges += [
        (s + end, s + n + number, 1) for number, ends in enumerate(graph.ends) for end in dict.fromkeys(ends)
    ]
    first = np.array(edges, np.int64).reshape(-1, 3)
    rows, counts = symmetric(first[:, 0], first[:, 1], first[:, 2], s + n + r)
    return {
        **strings_out("semantic_unit", pack(list(graph.units.ids))),
        "unit_weight": np.array(graph.units.weights, np.uint32),
        **lists_out("unit_chunks", graph.units.chunks),
        **strings_out("node_entity", pack(list(graph.entities.ids))),
        "entity_weight": np.array(graph.entities.weights, np.uint32),
        **lists_out("entity_chunks", graph.entities.chunks),
        **strings_out("node_relation", pack([TOLD.join(told) for told in graph.told])),
        "relation_weight": np.array(graph.relations.weights, np.uint32),
        **lists_out("relation_chunks", graph.relations.chunks),
        "relation_ends": np.array(graph.ends, np.uint32).reshape(-1, 2),
        **csr_out("mentions", rows),
        "mention_count": counts,
    }


def lists_out(name: str, rows: Sequence[Sequence[int]]) -> dict[str, NDArray[Any]]:
    """Return the compressed rows of lists of numbers."""
    ends = np.cumsum([0, *map(len, rows)], dtype=np.uint64)
    return csr_out(name, (ends, np.array([one for row in rows for one in row], np.uint32)))


Rows = tuple[NDArray[np.uint64], NDArray[np.uint32]]


def symmetric(
    first: NDArray[np.int64], second: NDArray[np.int64], counts: NDArray[np.int64], nodes: int
) -> tuple[Rows, NDArray[np.uint32]]:
    """Return undirected edges as compressed rows, in both directions, ascending; repeated edges add up.

    Self edges are left out.
    """
    apart = first != second
    first, second, counts = first[apart], second[apart], counts[apart]
    width = max(nodes, 1)
    keys = np.concatenate([first * width + second, second * width + first])
    unique, place = np.unique(keys, return_inverse=True)
    summed = np.bincount(place, np.concatenate([counts, counts]), len(unique)).astype(np.uint32)
    indptr = np.searchsorted(unique, np.arange(nodes + 1) * width).astype(np.uint64)
    return (indptr, (unique % width).astype(np.uint32)), summed


PIVOTS = 10
"""The number of source nodes of shortest paths."""
LEAST_MENTIONS = 2
"""The minimum number of mentions of an important entity."""


def important_entities(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the important entities in id order, with their scores."""
    nearest = settings.of(NodeRules).entity_rounding == "nearest"
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
