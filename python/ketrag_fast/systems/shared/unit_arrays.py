"""The arrays of the stage units by their rows, derived from its declaration.

A new array of units is declared once, in `UNITS`. Cutting in blocks and reuse after a change treat it by its
shape: rows are copied, numbers of rows of another kind are renumbered, and
strings are packed again. For each array that may be missing there is a function in `units.py`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from ketrag_fast.systems.shared import UNITS

if TYPE_CHECKING:
    from ketrag_fast.systems.shared.rows import Arrays

SIZES: Final = ("documents", "chunks", "units", "text_sentences")
"""The kinds of rows, by the named size of their arrays. A document with sections has several rows."""
_OFFSETS: Final = "_offsets"


class RowArrays(NamedTuple):
    """Names of the arrays with one row for each document, chunk, unit or sentence.

    `numbered` has the size that each array of numbers refers to, and `texts` packed strings.
    """

    dense: tuple[str, ...]
    numbered: dict[str, str]
    texts: tuple[str, ...]


@cache
def row_arrays(size: str) -> RowArrays:
    """Return the arrays with rows of this kind that every index has."""
    declared = {name: spec for name, spec in (UNITS.arrays or {}).items() if not spec.optional}
    own = {name: spec for name, spec in declared.items() if spec.shape[0] == size}
    ends = [n for n, spec in declared.items() if n.endswith(_OFFSETS) and spec.shape == (f"{size}+1",)]
    return RowArrays(
        tuple(name for name, spec in own.items() if spec.below is None),
        {name: spec.below for name, spec in own.items() if spec.below is not None},
        tuple(name.removesuffix(_OFFSETS) for name in ends),
    )


def count_rows(arrays: Arrays, size: str) -> int:
    """Return the number of rows of this kind."""
    own = row_arrays(size)
    return len(arrays[next(iter(own.numbered))]) if own.numbered else len(arrays[own.texts[0] + _OFFSETS]) - 1
