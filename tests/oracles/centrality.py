"""Core numbers and betweenness by their definitions: the oracles of the files in `rust/core/src/rank`."""

from __future__ import annotations

from collections.abc import Sequence

Rows = Sequence[Sequence[int]]


def core_numbers(rows: Rows) -> list[int]:
    """For each k the nodes that stay once those with fewer than k neighbours are taken away for good."""
    cores = [0] * len(rows)
    for k in range(1, len(rows) + 1):
        inside = set(range(len(rows)))
        while gone := [i for i in inside if len(inside.intersection(rows[i])) < k]:
            inside.difference_update(gone)
        for i in inside:
            cores[i] = k
    return cores


def betweenness(rows: Rows, pivots: Sequence[int]) -> list[float]:
    """For each pivot and each other end: the share of the shortest paths between them through each node."""
    sums = [0.0] * len(rows)
    every = [_paths(rows, start) for start in range(len(rows))]
    for start in pivots:
        for end, (length, number) in every[start].items():
            for via, (before, first) in every[start].items():
                if via in (start, end) or end not in every[via]:
                    continue
                after, second = every[via][end]
                if before + after == length:
                    sums[via] += first * second / number
    return sums


def _paths(rows: Rows, start: int) -> dict[int, tuple[int, int]]:
    """(distance, number of shortest paths) of each node that can be reached."""
    found = {start: (0, 1)}
    layer, distance = {start: 1}, 0
    while layer:
        distance += 1
        beyond: dict[int, int] = {}
        for node, number in layer.items():
            for other in rows[node]:
                if other not in found:
                    beyond[other] = beyond.get(other, 0) + number
        found |= {node: (distance, number) for node, number in beyond.items()}
        layer = beyond
    return found
