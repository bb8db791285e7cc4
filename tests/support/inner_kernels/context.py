"""Printed contexts within a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import U32, U64, count, number, pack_texts, text, whole


class FilledContext(NamedTuple):
    """A printed context and its rows (arrays of equal length, in print order).

    `tokens` is the sum of `row_tokens` and the header; `starts` and `ends` are offsets into the UTF-8
    bytes of `text` that delimit each unit's text, without mark and title.
    """

    text: str
    tokens: int
    units: U32
    row_tokens: U64
    starts: U64
    ends: U64


def split_budget(token_budget: int, share: float) -> tuple[int, int]:
    """Return `share` of the budget rounded half up, and the rest."""
    return _core.split_budget(count(token_budget, "token_budget"), number(share, "share"))


def render(
    candidates: ArrayLike,
    texts: Sequence[str],
    n_tokens: ArrayLike,
    token_budget: int,
    *,
    titles: Sequence[str] | None = None,
    style: str = "cited",
    fill_policy: str = "first_overflow_stops",
    oversize_policy: str = "truncate",
    encoding: str = "cl100k_base",
) -> FilledContext:
    """Print the first of `candidates` (unit ids, best first) that fit `token_budget`.

    A row costs its prefix, `n_tokens[unit]` (the count of `title + "\\n" + text`, or of the text alone
    if there is no title) and its line end. Styles: `cited` prints `[rank]`, title and text, with an
    empty line between rows; `ket` is KET-RAG's text section; `published` prints and counts it like the
    reference implementation.
    """
    packed_titles = None
    if titles is not None:
        blob, offsets = pack_texts(titles, "titles")
        packed_titles = (blob, offsets, np.arange(max(len(offsets), 1) - 1, dtype=np.uint32))
    return FilledContext(
        *_core.render(
            whole(candidates, np.uint32, "candidates"),
            *pack_texts(texts, "texts"),
            whole(n_tokens, np.uint32, "n_tokens"),
            count(token_budget, "token_budget"),
            titles=packed_titles,
            style=text(style, "style"),
            fill_policy=text(fill_policy, "fill_policy"),
            oversize_policy=text(oversize_policy, "oversize_policy"),
            encoding=text(encoding, "encoding"),
        )
    )
