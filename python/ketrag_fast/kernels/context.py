"""The budgeted, printed context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from ..errors import InputError


class Context(NamedTuple):
    """A printed context and its rows (arrays of equal length, in the order printed).

    `tokens` is the sum of `row_tokens` and of the header; `starts` and `ends` are offsets into the UTF-8
    bytes of `text` that hold each unit's own text, without mark and title.
    """

    text: str
    tokens: int
    units: NDArray[np.uint32]
    row_tokens: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]


def split_budget(token_budget: int, share: float) -> tuple[int, int]:
    """`share` of the budget rounded half up, and the rest (KET-RAG 1.5 step 1)."""
    return _core.split_budget(token_budget, share)


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
) -> Context:
    """The first of `candidates` (unit ids, best first) that fit `token_budget`, printed.

    A row costs its prefix, `n_tokens[unit]` (the count of `title + "\\n" + text`, or of the text alone
    where there is no title) and its line end. Styles: `cited` prints `[rank]`, title and text, with an
    empty line between rows; `ket` is KET-RAG's text section; `published` is the same as its public code
    prints and counts it. Source: 0.3 and 1.5 step 4 of the specification.
    """
    if token_budget < 0:
        raise InputError(f"the token budget is negative: {token_budget}")
    pack = None
    if titles is not None:
        pack = (*_pack(titles), np.arange(len(titles), dtype=np.uint32))
    ids, counts = np.asarray(candidates), np.asarray(n_tokens)
    for name, array in (("candidates", ids), ("n_tokens", counts)):
        if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 0)):
            raise InputError(f"{name} must be one row of integers >= 0")
    return Context(
        *_core.render(
            np.ascontiguousarray(ids, dtype=np.uint32),
            *_pack(texts),
            np.ascontiguousarray(counts, dtype=np.uint32),
            token_budget,
            titles=pack,
            style=style,
            fill_policy=fill_policy,
            oversize_policy=oversize_policy,
            encoding=encoding,
        )
    )


def _pack(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.uint64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets
