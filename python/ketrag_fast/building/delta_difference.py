"""The differences between the stored and the published documents, which are compared as lists of hashes.

NumPy is imported only if many documents changed: its import takes longer than everything else of an edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.storage.checksum import HASH_BYTES
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import SHORT_HASH
from ketrag_fast.storage.tables import Tables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MIDDLE: Final = 4_096
"""Documents between the first and the last change that are compared one by one, in 2 ms."""
_WORD: Final = 8


def difference(base: Generation, tables: Tables, most: int) -> tuple[set[int], dict[str, int]] | None:
    """Compare the documents of the tables with those that are published.

    Returns the published rows that go, and for each new id the row before which it comes; None if the
    documents that stay are in another order, or more than `most` others changed.
    """
    published = _halves(bytes(base.stages["units"].columns["document_hashes"][:].cast("B")), SHORT_HASH)
    now = _halves(tables.content_bytes(), HASH_BYTES)
    first = _equal_rows(published, now)
    last = min(_equal_rows(published, now, at_end=True), len(published[0]) - first, len(now[0]) - first)
    end = len(published[0]) - last
    before, after = (
        [(heads[row], tails[row]) for row in range(first, len(heads) - last)]
        if len(heads) - last - first <= _MIDDLE
        else None
        for heads, tails in (published, now)
    )
    if before is None or after is None:
        return _difference_of_many(base, tables, most)
    place = {one: first + at for at, one in enumerate(before)}
    rows = [place.get(one, -1) for one in after]
    kept = [row for row in rows if row >= 0]
    if len(place) < len(before) or sorted(set(kept)) != kept:
        return None
    gone, new = set(range(first, end)).difference(kept), [at for at, row in enumerate(rows) if row < 0]
    if len(gone) + len(new) > most:
        return None
    following, following_of = end, {}
    for at in reversed(range(len(rows))):
        following = rows[at] if rows[at] >= 0 else following
        following_of[at] = following
    names = tables.ids_at([first + at for at in new])
    return gone, {name: following_of[at] for name, at in zip(names, new, strict=True)}


Halves = tuple[memoryview, memoryview]


def _halves(hashes: bytes, size: int) -> Halves:
    """Return the first and the second eight bytes of hashes of `size` bytes each, as numbers."""
    words = memoryview(hashes).cast("Q") if hashes else memoryview(b"").cast("Q")
    step = size // _WORD
    head, tail = (memoryview(words[at::step].tobytes()).cast("Q") for at in range(2))
    return head, tail


def _equal_rows(one: Halves, other: Halves, *, at_end: bool = False) -> int:
    """Return the number of equal rows at the beginning, or at the end."""
    low, high = 0, min(len(one[0]), len(other[0]))
    while low < high:
        middle = (low + high + 1) // 2
        same = all(
            a[len(a) - middle :] == b[len(b) - middle :] if at_end else a[:middle] == b[:middle]
            for a, b in zip(one, other, strict=True)
        )
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _difference_of_many(
    base: Generation, tables: Tables, most: int
) -> tuple[set[int], dict[str, int]] | None:
    import numpy as np

    published = np.ascontiguousarray(base.stages["units"]["document_hashes"])
    rows = _positions(published, np.ascontiguousarray(tables.contents()[:, :SHORT_HASH]))
    if rows is None:
        return None
    count, kept, new = len(published), rows[rows >= 0], np.flatnonzero(rows < 0)
    if (np.diff(kept) <= 0).any() or count - len(kept) + len(new) > most:
        return None
    following = np.append(kept, count)[np.cumsum(rows >= 0)[new]]
    names = tables.ids_at(new.tolist())
    gone = set(np.setdiff1d(np.arange(count), kept).tolist())
    return gone, dict(zip(names, following.tolist(), strict=True))


def rows_of(hashes: bytes, wanted: Sequence[bytes]) -> list[int] | None:
    """Return the row of each content hash among `hashes`, or -1; None if two of these begin alike."""
    import numpy as np

    every, own = (
        np.frombuffer(data, np.uint8).reshape(-1, HASH_BYTES) for data in (hashes, b"".join(wanted))
    )
    found = _positions(every, own)
    return None if found is None else found.tolist()


def _positions(hashes: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the row of each of `wanted` among `hashes`, or -1; None if two of these begin alike."""
    import numpy as np

    heads, tails = (hashes.view(np.uint64)[:, column] for column in (0, 1))
    order = np.argsort(heads)
    ordered = heads[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None
    if not len(order):
        return np.full(len(wanted), -1, np.int64)
    own = wanted.view(np.uint64)
    rows = order[np.minimum(np.searchsorted(ordered, own[:, 0]), len(order) - 1)]
    same = (heads[rows] == own[:, 0]) & (tails[rows] == own[:, 1])
    return np.where(same, rows, -1)
