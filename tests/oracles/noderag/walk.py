"""Effective weights, transitions and the short walk (spec 30, 3.10 and 3.11 steps 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tests.oracles.noderag.graph import Graph, Key
from tests.oracles.noderag.switches import OURS, Switches

Weights = dict[Key, dict[Key, float]]


def effective_weights(graph: Graph, *, unbalance_adjust: bool = True) -> Weights:
    """Each edge weighs at most 1 / degree of either end (3.10 step 1).

    An edge from a node to itself, which only keys without a type can make, counts twice, as networkx counts.
    """
    degree = {key: len(row) + (key in row) for key, row in graph.adjacent.items()}
    if not unbalance_adjust:
        return {key: dict(row) for key, row in graph.adjacent.items()}
    return {
        key: {other: min(weight, 1 / degree[key], 1 / degree[other]) for other, weight in row.items()}
        for key, row in graph.adjacent.items()
    }


def transition(weights: Weights, switches: Switches = OURS) -> Weights:
    """For each node, the chance to go to each other (3.10 step 2)."""
    chances: Weights = {}
    for key, row in weights.items():
        if not row:
            if switches.isolated_stay or len(weights) == 1:
                chances[key] = {key: 1.0}
            else:
                chances[key] = {other: 1 / (len(weights) - 1) for other in weights if other != key}
            continue
        others = {other: weight for other, weight in row.items() if other != key}
        total = math.fsum(others.values())
        chances[key] = {other: weight / total for other, weight in others.items()}
    return chances


def entry_weights(
    vector_hits: Iterable[Key],
    exact_hits: Iterable[Key],
    *,
    similarity_weight: float = 1,
    accuracy_weight: float = 1,
) -> dict[Key, float]:
    """p of 3.11 step 3: a node counts once, as an exact hit if it is one; empty without entries."""
    start = dict.fromkeys(vector_hits, similarity_weight)
    start.update(dict.fromkeys(exact_hits, accuracy_weight))
    total = math.fsum(start.values())
    return {key: weight / total for key, weight in start.items()} if total > 0 else {}


def walk(
    chances: Weights,
    start: Mapping[Key, float],
    *,
    alpha: float = 0.5,
    steps: int = 2,
    switches: Switches = OURS,
) -> dict[Key, float]:
    """The score of every node after t steps (3.11 step 4); empty where there is no entry."""
    if not start:
        return {}
    scores = {key: start.get(key, 0.0) for key in chances}
    for _ in range(steps):
        came: dict[Key, list[float]] = {key: [] for key in chances}
        for key, score in scores.items():
            for other, chance in chances[key].items() if score else ():
                came[other].append(chance * score)
        before = scores
        moved = {key: math.fsum(parts) for key, parts in came.items()}
        if switches.teleport:
            scores = {key: alpha * start.get(key, 0.0) + (1 - alpha) * moved[key] for key in chances}
        else:
            scores = {key: alpha * moved[key] + (1 - alpha) * before[key] for key in chances}
        change = math.sqrt(math.fsum((scores[key] - before[key]) ** 2 for key in chances))
        if not switches.fixed_steps and change < 1e-5:
            break
    return scores
