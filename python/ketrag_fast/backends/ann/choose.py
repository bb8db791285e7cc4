"""Which of the two is used, and for how many vectors."""

from __future__ import annotations

from typing import Final, Literal

Choice = Literal["auto", "exact", "hnswlib"]

APPROXIMATE_FROM: Final = 200_000
"""Vectors from which `auto` uses hnswlib, if it is installed; below, the scan is as fast and exact."""


def choose(count: int, choice: Choice, installed: bool) -> Literal["exact", "hnswlib"]:
    """`auto` prefers the exact scan up to `APPROXIMATE_FROM` vectors, and where hnswlib is missing."""
    if choice != "auto":
        return choice
    return "hnswlib" if installed and count >= APPROXIMATE_FROM else "exact"
