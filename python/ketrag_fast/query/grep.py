"""Exact search: the lines of the indexed texts that match a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.storage.threads import map_threads
from ketrag_fast.types.hits import ShownLine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.query.open_generation import Opened

_ENDLESS: Final = 2**62
_AHEAD: Final = 4
"""Blocks for each thread that are read before it is decided whether more are needed."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that matches: the number of its document, its range in code points, and its text.

    The number of the line is None if the document has no lines of a file. `text_line` counts those of the
    indexed text.
    """

    document: int
    start: int
    end: int
    line: ShownLine
    text_line: int


def matching_lines(
    opened: Opened,
    pattern: _core.Pattern,
    wanted: NDArray[np.bool_] | None,
    limit: int | None,
    check: Callable[[], object],
) -> Iterator[FoundLine]:
    """Yield the lines that match in the wanted documents, in index order, at most `limit`."""
    most = _ENDLESS if limit is None else limit
    texts = opened.texts

    def find(numbers: NDArray[np.int64]) -> list[FoundLine]:
        check()
        blob, offsets = texts.read_block(numbers)
        rows = pattern.lines((blob, offsets), _ENDLESS, most)
        begins: dict[int, int | None] = {}
        found = []
        for string, line, start, end, text, cut, marks in rows:
            document = int(numbers[string])
            if document not in begins:
                data = blob[int(offsets[string]) : int(offsets[string + 1])].tobytes()
                begins[document] = texts.first_line(document, data)
            first = begins[document]
            number = None if first is None else first + line
            shown = ShownLine(text, tuple(marks), number, cut)
            found.append(FoundLine(document, start, end, shown, line + 1))
        return found

    count = 0
    for found in _in_order(find, texts.blocks(wanted), opened):
        yield from found[: most - count]
        count += len(found)
        if count >= most:
            return


def matching_counts(
    opened: Opened,
    pattern: _core.Pattern,
    wanted: NDArray[np.bool_] | None,
    check: Callable[[], object],
) -> list[tuple[int, int]]:
    """Return the wanted documents that have matching lines, with the number of these."""
    texts = opened.texts

    def count(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
        check()
        counts = pattern.counts(texts.read_block(numbers), _ENDLESS)
        has = np.flatnonzero(counts)
        return list(zip(numbers[has].tolist(), counts[has].tolist(), strict=True))

    return [row for rows in _in_order(count, texts.blocks(wanted), opened) for row in rows]


def _in_order(work: Callable[[Any], Any], blocks: list[Any], opened: Opened) -> Iterator[Any]:
    """Yield the results for blocks. Some are computed at the same time, and none far ahead of need."""
    step = opened.threads * _AHEAD
    for at in range(0, len(blocks), step):
        yield from map_threads(work, blocks[at : at + step], opened.threads)
