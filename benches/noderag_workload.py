"""A NodeRAG index of a given size made of nothing: decompositions by chance, and what a build would add to them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Output = list[dict[str, Any]]
Pair = tuple[str, str]


@dataclass
class Workload:
    """Everything that is measured starts from this; names of nodes are their texts."""

    decompositions: list[Output]
    """For each chunk its units: text, entities, relationships "A, rel, B"."""
    chunks: list[str]
    attributes: list[Pair]
    """(entity, text)."""
    elements: list[tuple[str, str, list[str]]]
    """(title, description, units that it is joined to)."""
    semantic: list[Pair] = field(default_factory=list)
    """Edges among texts, units, attributes and elements."""
    vector_hits: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)


def workload(nodes: int, seed: int = 17) -> Workload:
    """Return a workload of about that many nodes; `add_semantic` adds the remaining edges."""
    rng = random.Random(seed)
    chunks, units = max(nodes // 20, 1), nodes * 3 // 10
    decompositions: list[Output] = [[] for _ in range(chunks)]
    for unit in range(units):
        # Few names are in many units, most in one or two.
        names = [f"NAME {int(units * rng.random() ** 2)}" for _ in range(3)]
        relations = [f"{names[0]}, met in {unit}, {names[1]}"] if names[0] != names[1] else []
        decompositions[unit * chunks // units].append(
            {"semantic_unit": f"Unit {unit} of it.", "entities": names, "relationships": relations}
        )
    known = sorted({name for output in decompositions for row in output for name in row["entities"]})
    relations_made = len(
        {
            frozenset(r.split(", ")[::2])
            for output in decompositions
            for row in output
            for r in row["relationships"]
        }
    )
    left = max(nodes - chunks - units - len(known) - relations_made, 3)
    of = sorted(rng.sample(known, min(left // 3, len(known))))
    attributes = [(name, f"All about {name}.") for name in of]
    elements = []
    for number in range((left - len(of)) // 2):
        near = [f"Unit {unit} of it." for unit in sorted(rng.sample(range(units), min(4, units)))]
        elements.append((f"TITLE {number}", f"Insight {number}.", near))
    return Workload(decompositions, [f"Chunk {k}." for k in range(chunks)], attributes, elements)


def add_semantic(load: Workload, missing: int, seed: int = 18) -> None:
    """Add that many distinct edges among nodes with a vector, and a question."""
    rng = random.Random(seed)
    embedded = [row["semantic_unit"] for output in load.decompositions for row in output]
    embedded += load.chunks + [text for _, text in load.attributes] + [text for _, text, _ in load.elements]
    seen: set[tuple[int, int]] = set()
    while len(seen) < missing:
        one, other = rng.randrange(len(embedded)), rng.randrange(len(embedded))
        if one != other:
            seen.add((min(one, other), max(one, other)))
    load.semantic = [(embedded[one], embedded[other]) for one, other in sorted(seen)]
    load.vector_hits = rng.sample(embedded, 10)
    load.terms = ["NAME 5", "NAME 77", "no such name"]


@dataclass
class Rows:
    """A graph as arrays: row `k` has the neighbours of node `k` and the weights of their edges, both ways."""

    names: list[str]
    kinds: list[str]
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray


def rows_of(graph: Any, name_of: dict[str, str]) -> Rows:
    """Of a networkx graph, its nodes in its order."""
    nodes = list(graph.nodes)
    number = {node: k for k, node in enumerate(nodes)}
    indptr, indices, weights = [0], [], []
    for node in nodes:
        row = sorted((number[other], data["weight"]) for other, data in graph[node].items())
        indices += [other for other, _ in row]
        weights += [weight for _, weight in row]
        indptr.append(len(indices))
    kinds = [graph.nodes[node].get("type") or "" for node in nodes]
    return Rows(
        [name_of.get(node, node) for node in nodes],
        kinds,
        np.array(indptr, np.uint64),
        np.array(indices, np.uint32),
        np.array(weights, np.float64),
    )
