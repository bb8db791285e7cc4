"""Budgeted contexts and KET-RAG's keyword channel, plainly: oracles of `rust/core/src/search`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Count = Callable[[str], int]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

STYLES = {
    "cited": ("", "[{}]\n", "\n\n"),
    "ket": ("-----Text source that may be relevant-----\nid|text\n", "chunk_{}|", "\n"),
    "published": ("\n\n-----Text source that may be relevant-----\nid|text\n", "chunk_{}|", "\n"),
}


_BREAK = re.compile(r"([\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029])")
_MARK = re.compile(r"^(\s*)\[([0-9]+)\](?=\s|\Z)")


def unmarked(body: str) -> str:
    """A unit's text in which no line begins with what looks like the mark of a row."""
    return "".join(_MARK.sub(r"\1(\2)", part) for part in _BREAK.split(body))


def fill(costs: Sequence[int], budget: int, *, skip: bool = False) -> list[int]:
    """The places of the rows that fit, in order."""
    taken: list[int] = []
    for place, cost in enumerate(costs):
        if sum(costs[p] for p in taken) + cost <= budget:
            taken.append(place)
        elif not skip:
            break
    return taken


def render(
    candidates: Sequence[int],
    bodies: Sequence[str],
    n_tokens: Sequence[int],
    budget: int,
    count: Count,
    *,
    style: str = "cited",
    skip: bool = False,
) -> tuple[str, int, list[int]]:
    """(context, tokens, printed units); a body is a unit's title and text as printed. Nothing is cut."""
    header, prefix, end = STYLES[style]
    used, rows, taken = count(header), [], list[int]()
    for unit in candidates:
        mark = prefix.format(len(taken) + 1)
        shown = unmarked(bodies[unit]) if style == "cited" else bodies[unit]
        if style == "published":
            cost = count(mark + bodies[unit] + end)
        else:
            cost = count(mark) + n_tokens[unit] + count(end)
        if used + cost <= budget:
            used += cost
            taken.append(unit)
            rows.append(mark + shown + end)
        elif not skip:
            break
    if not taken:
        return "", 0, []
    text = header + "".join(rows)
    return (text[:-1] if style == "cited" else text), used, taken


def keyword_pool(
    query: F32,
    keywords: F64,
    keyword_units: Sequence[Sequence[int]],
    units: F32,
    n_tokens: Sequence[int],
    budget: int,
    *,
    most_keywords: int | None = None,
) -> list[int]:
    """KET-RAG 1.5 steps 3 and 4: unit ids by similarity, collected from the keywords nearest to `query`.

    `keywords` [W, d] in order of token, `units` [n, d]. The public code tests the overflow before it tests
    whether a unit is already in the pool (1.9), so that its pools may end sooner.
    """
    scores = keywords @ query.astype(np.float64)
    seeds = np.argsort(-scores, kind="stable").tolist()[:most_keywords]
    near = units.astype(np.float64) @ query.astype(np.float64)
    pool: set[int] = set()
    used = 0
    for keyword in seeds:
        for unit in sorted(keyword_units[keyword], key=lambda u: (-near[u], u)):
            if unit in pool:
                continue
            if used + n_tokens[unit] > 2 * budget:
                return sorted(pool, key=lambda u: (-near[u], u))
            pool.add(unit)
            used += n_tokens[unit]
    return sorted(pool, key=lambda u: (-near[u], u))
