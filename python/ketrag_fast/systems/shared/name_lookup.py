"""Lookup of a name, or of similar names, in packed strings without decoding all of them."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NEAR = 5
_CLOSE = 0.6  # minimum difflib ratio of a similar name
_COMPARED = 1000
"""The number of names compared by difflib, which takes 10 us each."""


class Names:
    """Packed names by id, all in the case that `case` produces.

    Half a million names are compared as bytes, and only candidates are decoded.
    """

    def __init__(
        self, blob: NDArray[np.uint8], offsets: NDArray[Any], case: Callable[[str], str] = str.upper
    ) -> None:
        self._blob = blob
        self._offsets = offsets
        self._case = case

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        first, last = self._offsets[number : number + 2].tolist()
        return self._blob[first:last].tobytes().decode()

    def find(self, name: str) -> int | None:
        """Return the id of a name, ignoring case; None if it does not exist."""
        plain = " ".join(name.split())
        for key in dict.fromkeys((plain, self._case(plain), self._case(plain.casefold()))):
            found = self._exact(key)
            if found is not None:
                return found
        return self._odd.get(plain.casefold())

    def near(self, name: str) -> list[str]:
        """Return at most five names: those that contain this one, shortest first, then similar spellings."""
        wanted = " ".join(name.split()).casefold()
        if not wanted:
            return []
        compared = {self[number]: number for number in self._alike(wanted)}
        inside = sorted(
            (len(known), compared[known], known) for known in compared if wanted in known.casefold()
        )
        folded = {known.casefold(): known for known in reversed(compared)}
        close = [folded[known] for known in get_close_matches(wanted, folded, _NEAR, _CLOSE)]
        return list(dict.fromkeys([known for _, _, known in inside[:_NEAR]] + close))[:_NEAR]

    def _exact(self, key: str) -> int | None:
        data = _bytes(key)
        rows = np.flatnonzero(np.diff(self._offsets) == len(data))
        starts = self._offsets[rows].astype(np.int64)
        for place, byte in enumerate(data):
            if not len(rows):
                return None
            same = self._blob[starts + place] == byte
            rows, starts = rows[same], starts[same]
        return int(rows[0]) if len(rows) and data else None

    @cached_property
    def _odd(self) -> dict[str, int]:
        """Case-folded names that `case` does not restore, such as those with a capital sharp s."""
        rows = np.unique(self._row_of(np.flatnonzero(self._blob >= 0x80))).tolist()
        names = ((row, self[row]) for row in reversed(rows))
        return {known.casefold(): row for row, known in names if self._case(known.casefold()) != known}

    def _alike(self, wanted: str) -> list[int]:
        """Return the names to compare: all if there are few, or else those that share most byte trigrams."""
        if len(self) <= _COMPARED:
            return list(range(len(self)))
        data = np.frombuffer(_bytes(self._case(wanted)), np.uint8)
        size = min(3, len(data))
        shared = np.zeros(1 << 8 * size, np.bool_)
        shared[_grams(data, size)] = True
        places = np.flatnonzero(shared[_grams(self._blob, size)])
        rows = self._row_of(places)
        rows = rows[places + size <= self._offsets[rows + 1]]  # drop trigrams that cross into the next name
        counts = np.bincount(rows, minlength=len(self))
        lengths = np.diff(self._offsets).astype(np.int64)
        alike = 2 * counts / (lengths + len(data))
        best = np.argsort(-alike, kind="stable")[: _COMPARED // 2]
        containing = np.lexsort((lengths, -counts))[: _COMPARED // 2]
        chosen = np.union1d(best, containing)
        return [int(number) for number in chosen[counts[chosen] > 0]]

    def _row_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self._offsets, places, "right") - 1


def _grams(data: NDArray[np.uint8], size: int) -> NDArray[np.uint32]:
    """Return each run of `size` bytes as one number."""
    found: NDArray[np.uint32] = np.zeros(max(len(data) - size + 1, 0), np.uint32)
    for place in range(size):
        found <<= np.uint32(8)
        found |= data[place : place + len(found)]
    return found


def _bytes(text: str) -> bytes:
    """Encode as UTF-8; lone surrogates become bytes that no stored name contains."""
    return text.encode("utf-8", "surrogatepass")
