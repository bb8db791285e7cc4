"""Core numbers by their definition: the oracle of `rust/rank/core_numbers.rs`."""

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
