"""The text-keyword graph by sets: the oracle of `rust/core/src/graph/bipartite.rs`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Lists = list[list[int]]


def bipartite(
    units: Sequence[Collection[int]], *, min_df: int = 1, max_df_ratio: float = 1.0
) -> tuple[Lists, Lists, list[int]]:
    """(keywords of each unit, units of each keyword, kept words), from the distinct words of each unit."""
    df = {word: sum(word in unit for unit in units) for word in sorted(set().union(*units))}
    most = max_df_ratio * len(units) + 1e-9
    kept = [word for word, n in df.items() if min_df <= n <= most]
    keywords = [[k for k, word in enumerate(kept) if word in unit] for unit in units]
    return keywords, [[u for u, unit in enumerate(units) if word in unit] for word in kept], kept
