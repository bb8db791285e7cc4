"""Sentences of units, with their keywords, texts and positions, read from the arrays of an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.rows import U32, U64, Arrays, csr, lengths, select_rows, strings

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a unit; offsets are code points of its document."""

    unit: int
    start: int
    end: int
    text: str


class Sentences:
    """The sentences of an index. Their numbers are the row numbers of the links."""

    def __init__(self, units: Arrays, links: Arrays) -> None:
        self._units, self._links = units, links
        own = np.flatnonzero(np.asarray(units["sent_title"]) == 0)
        self._spans = np.asarray(units["sent_bytes"])[own]
        self._first = np.asarray(links["first_sentence"]).astype(np.int64)
        self._begins = np.asarray(units["unit_bytes"])[:, 0]
        self._starts = np.asarray(units["unit_span"])[:, 0]
        self._texts: dict[int, str] = {}

    def text_of_units(self, units: Sequence[int]) -> list[str]:
        """Return the texts of some units, from a cache if possible."""
        new = [unit for unit in units if unit not in self._texts]
        if new:
            texts = _core.take_strings(strings(self._units, "unit_texts"), np.array(new, np.uint32))
            self._texts.update(zip(new, unpack(*texts), strict=True))
        return [self._texts[unit] for unit in units]

    def of(self, units: I64) -> tuple[I64, I64]:
        """Return the sentences of some units, and for each sentence the position of its unit in `units`."""
        counts = self._first[units + 1] - self._first[units]
        owner = np.repeat(np.arange(len(units)), counts)
        shift = np.repeat(self._first[units] - np.cumsum(counts) + counts, counts)
        return shift + np.arange(len(shift)), owner

    def keywords(self, sentences: I64, units: I64) -> tuple[U64, U32]:
        """Return the keywords of some sentences, given the unit of each."""
        indptr, places = select_rows(csr(self._links, "sentence_keywords"), sentences)
        of_unit, ids = csr(self._links, "unit_keywords")
        counts = lengths(indptr)
        own = np.repeat(units, counts)
        size = (of_unit[own + 1] - of_unit[own]).astype(np.int64)
        place = places.astype(np.int64)
        # Keywords that the unit lacks are stored after its row (rust/core/src/rank/sentence_rows.rs).
        inside = place < size
        found = np.where(inside, 0, place - size).astype(np.uint32)
        found[inside] = ids[of_unit[own[inside]].astype(np.int64) + place[inside]]
        return indptr, found

    def texts(self, sentences: I64, units: I64) -> Iterator[Sentence]:
        """Yield the texts of sentences without surrounding whitespace, given the unit of each."""
        spans = self._spans[sentences].tolist()
        begins, starts = self._begins[units].tolist(), self._starts[units].tolist()
        numbers = units.tolist()
        texts = self.text_of_units(numbers)
        for unit, text, (first, last), begin, start in zip(
            numbers, texts, spans, begins, starts, strict=True
        ):
            data = text.encode()
            before = data[: max(first - begin, 0)].decode("utf-8", "ignore")
            whole = data[max(first - begin, 0) : max(last - begin, 0)].decode("utf-8", "ignore")
            cut = whole.strip()
            at = start + len(before) + len(whole) - len(whole.lstrip())
            yield Sentence(unit, at, at + len(cut), cut)
