"""The oracle of `rust/core/src/search/fill.rs`."""

from __future__ import annotations

from collections.abc import Sequence


def fill(costs: Sequence[int], budget: int, *, skip: bool = False) -> list[int]:
    """The places of the rows that fit, in order."""
    taken: list[int] = []
    for place, cost in enumerate(costs):
        if sum(costs[p] for p in taken) + cost <= budget:
            taken.append(place)
        elif not skip:
            break
    return taken
