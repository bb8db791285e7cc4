"""Which entities are described by an attribute (spec 30, section 3.4)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tests.oracles.noderag.graph import Graph, Key
from tests.oracles.noderag.switches import OURS, Switches

LEAST_MENTIONS = 2


def default_core(graph: Graph, switches: Switches = OURS) -> int:
    """k0 of step 1."""
    if not graph.nodes:
        return 0
    ends = sum(len(row) + (key in row) for key, row in graph.adjacent.items())
    value = math.log(len(graph.nodes)) * math.sqrt(ends / len(graph.nodes))
    return math.floor(value) if switches.floor else round(value)


def k_core(graph: Graph, k: int) -> list[Key]:
    """What is left when nodes with fewer than k neighbours are taken away, again and again."""
    left = {key: set(row) - {key} for key, row in graph.adjacent.items()}
    while few := [key for key, row in left.items() if len(row) < k]:
        for key in few:
            for other in left.pop(key):
                if other in left:
                    left[other].discard(key)
    return [key for key in graph.nodes if key in left]


def core_numbers(graph: Graph) -> dict[Key, int]:
    """For each node the largest k whose core it belongs to."""
    numbers, k = dict.fromkeys(graph.nodes, 0), 1
    while core := k_core(graph, k):
        numbers.update(dict.fromkeys(core, k))
        k += 1
    return numbers


def betweenness(graph: Graph, pivots: Sequence[Key]) -> dict[Key, float]:
    """Brandes (2001) from some nodes: sums of raw dependencies, edges without weights (step 2)."""
    total = dict.fromkeys(graph.nodes, 0.0)
    for pivot in pivots:
        distance, paths = {pivot: 0}, dict.fromkeys(graph.nodes, 0.0)
        paths[pivot] = 1.0
        order, waiting = [], deque([pivot])
        while waiting:
            key = waiting.popleft()
            order.append(key)
            for other in graph.adjacent[key]:
                if other not in distance:
                    distance[other] = distance[key] + 1
                    waiting.append(other)
                if distance[other] == distance[key] + 1:
                    paths[other] += paths[key]
        dependency = dict.fromkeys(graph.nodes, 0.0)
        for key in reversed(order):
            for other in graph.adjacent[key]:
                if distance[other] == distance[key] + 1:
                    dependency[key] += paths[key] / paths[other] * (1 + dependency[other])
            if key != pivot:
                total[key] += dependency[key]
    return total


def scale_of(nodes: int, switches: Switches = OURS) -> int:
    """By how much a node has to exceed the mean (step 2)."""
    if nodes == 0:
        return 1
    value = math.log10(nodes)
    return max(1, math.floor(value)) if switches.floor else round(value)


def important(
    graph: Graph,
    pivots: Sequence[Key],
    *,
    most: int | None = None,
    switches: Switches = OURS,
) -> list[Key]:
    """The important entities in the order of their ids, of a graph of kinds S, N, R (steps 1 to 4)."""
    scores = betweenness(graph, pivots)
    mean = sum(scores.values()) / max(len(scores), 1)
    limit = mean * scale_of(len(scores), switches)
    chosen = {key for key, score in scores.items() if score > limit}
    if switches.core == "kcore":
        chosen |= set(k_core(graph, default_core(graph, switches)))
    nodes = graph.nodes
    found = [
        key
        for key in nodes
        if key in chosen and nodes[key].kind == "N" and nodes[key].weight >= LEAST_MENTIONS
    ]
    if most is not None and len(found) > most:
        best = sorted(found, key=lambda key: -scores[key])[:most]
        found = [key for key in found if key in best]
    return found
