"""Compressed rows by sets: the oracle of `rust/core/src/graph/transpose.rs`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Lists = list[list[int]]


def transpose(rows: Sequence[Collection[int]], columns: int) -> Lists:
    """Return for each column the rows that contain it."""
    return [[i for i, row in enumerate(rows) if column in row] for column in range(columns)]


def renumber(rows: Sequence[Collection[int]], kept: Sequence[int]) -> Lists:
    """Return the rows with the columns of `kept` alone, as positions in it."""
    return [[k for k, column in enumerate(kept) if column in row] for row in rows]
