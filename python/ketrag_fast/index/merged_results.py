"""Results of one query in several indexes, merged into one context or one list of hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ketrag_fast.errors import DeadlineExceeded, KetragError
from ketrag_fast.index.parts import Part, Printed
from ketrag_fast.records import dataclass, replace
from ketrag_fast.types import Context, Hit, Hits, Passage
from ketrag_fast.types.contexts import NOTHING_FITS, merged_reading


@dataclass(frozen=True)
class Row:
    """A passage of one index with its rank among those of all indexes."""

    rank: int
    passage: Passage
    block: str
    """Its printed text."""
    changes: dict[str, Any]
    """Fields in which the passage of the result differs."""

    def ranked(self, rank: int) -> Passage:
        """Return the passage of the result."""
        return replace(self.passage, rank=rank, **self.changes)


@dataclass(frozen=True)
class Found:
    """The passages of one index."""

    part: Part
    printed: Printed
    rows: list[Row]

    @property
    def context(self) -> Context:
        """The passages that the index printed."""
        return self.printed.context


def _merged(found: Sequence[Found], late: Mapping[str, KetragError]) -> dict[str, Any]:
    """Return the fields that contexts and hits of several indexes have in common."""
    nothing_fits = any(one.rows for one in found) and all(
        one.context.nothing_fits for one in found if one.rows
    )
    return merged_fields([one.context for one in found], late, nothing_fits=nothing_fits)


def merged_fields(
    contexts: Sequence[Context], late: Mapping[str, KetragError], *, nothing_fits: bool
) -> dict[str, Any]:
    """Return the fields of the contexts of several indexes that are not those of one of them."""
    warnings = dict.fromkeys(warning for one in contexts for warning in one.warnings)
    warnings.pop(NOTHING_FITS, None)  # the other indexes may have what fits
    slow = ", ".join(name for name, error in late.items() if isinstance(error, DeadlineExceeded))
    without = [f"without {slow}: no answer in time"] if slow else []
    for name, error in late.items():
        if not isinstance(error, DeadlineExceeded):
            without.append(f"without {name}: {error.message}")
    return {
        "warnings": (*without, *warnings, *((NOTHING_FITS,) if nothing_fits else ())),
        "nothing_fits": nothing_fits,
        "missing": tuple(late),
        **merged_reading(contexts),
    }


def merged_context(found: Sequence[Found], late: Mapping[str, KetragError]) -> Context:
    """Return one context with the passages of several indexes by rank, within one budget."""
    rows = sorted((row for one in found for row in one.rows), key=lambda row: row.rank)
    first = next((one for one in found if one.rows), found[0])
    rows = rows[: first.part.top]
    count = 0
    while count < len(rows) and sum(row.passage.tokens for row in rows[: count + 1]) <= first.context.budget:
        count += 1
    passages = [row.ranked(rank) for rank, row in enumerate(rows[:count], 1)]
    tokens = sum(passage.tokens for passage in passages)
    text = "\n".join(f"[{rank}]{row.block}\n" for rank, row in enumerate(rows[:count], 1))
    return replace(
        first.context,
        tokens=tokens,
        text=text,
        passages=passages,
        sections=tuple(replace(one, tokens=tokens, text=text) for one in first.context.sections),
        **_merged(found, late),
    )


def merged_hits(found: Sequence[Found], count: int, late: Mapping[str, KetragError]) -> Hits:
    """Return the hits of several indexes in the order of their ranks."""
    ranked: list[tuple[int, Hit]] = []
    first: Hits | None = None
    for one in found:
        if one.printed.hits is None:
            continue
        passages = tuple(row.ranked(row.rank) for row in one.rows)
        hits = one.printed.hits(replace(one.context, passages=passages)).of_index(one.part.name)
        ranked += ((passage.rank, hit) for passage, hit in zip(passages, hits, strict=False))
        first = hits if first is None or (hits and not first) else first
    best = sorted(ranked, key=lambda row: row[0])[:count]
    shown = tuple(replace(hit, rank=rank) for rank, (_, hit) in enumerate(best, 1))
    query, mode, reason = (first.query, first.mode, first.reason) if first is not None else ("", "", None)
    return Hits(query, mode, shown, None if shown else reason, **_merged(found, late))
