"""Texts to encode: each unit, preceded by the title of its document, and the sentences in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.systems.shared.rows import (
    U8,
    U32,
    U64,
    Arrays,
    lengths,
    sentence_order,
    strings,
    texts_in_context,
)

Packed = tuple[U8, U64]


def embedded_units(units: Arrays) -> Iterator[str]:
    """Yield the text of each unit after the title of its document."""
    return texts_after_titles(
        strings(units, "document_titles"), units["unit_document"], texts_in_context(units)
    )


def texts_after_titles(titles: Packed | None, owner: U32 | None, packed: Packed) -> Iterator[str]:
    """Yield each text after the title of its document, if any, decoding one at a time."""
    heads = list(_decode(titles)) if titles is not None else []
    for number, text in enumerate(_decode(packed)):
        title = heads[owner[number]] if owner is not None else ""
        yield f"{title}\n{text}" if title else text


def sentence_texts(units: Arrays) -> Iterator[str]:
    """Yield the texts of sentences that are not titles.

    A sentence that continues in the next unit ends with its first unit here.
    """
    own = _own_sentences(units)
    unit = units["sent_unit"][own].astype(np.uint32)
    span = np.clip(_inside(units, own), 0, lengths(units["unit_texts_offsets"])[unit][:, None])
    yield from _decode(_core.slice_strings(strings(units, "unit_texts"), unit, span.astype(np.uint32)))


def title_texts(units: Arrays) -> Packed:
    """Return the title of each document that has one."""
    order, own = sentence_order(units)
    document = units["chunk_document"][units["sent_chunk"][order[own:]]]
    return _core.take_strings(strings(units, "document_titles"), document)


def decode(packed: Packed) -> Iterator[str]:
    """Yield packed texts."""
    yield from _decode(packed)


@dataclass(frozen=True)
class Spans:
    """Spans in the encoded texts of units; unit `u` has the rows `indptr[u]` to `indptr[u + 1]`.

    `sentence` is the number of each span among the sentences that are not titles.
    """

    indptr: NDArray[np.int64]
    span: NDArray[np.int64]
    sentence: NDArray[np.int64]

    def rows(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the spans of each unit."""
        for start, end in pairwise(self.indptr.tolist()):
            yield [(first, last) for first, last in self.span[start:end].tolist()]


def spans_of(units: Arrays) -> Spans:
    """Return the sentences of each unit as spans."""
    own = _own_sentences(units)
    unit = units["sent_unit"][own].astype(np.int64)
    titles = lengths(units["document_titles_offsets"])[units["unit_document"]]
    before = lengths(units["unit_before_offsets"])
    head = (np.where(titles > 0, titles + 1, 0) + before)[unit]
    size = lengths(units["unit_texts_offsets"])[unit]
    span = np.clip(_inside(units, own), 0, size[:, None]) + head[:, None]
    by_unit = np.lexsort((span[:, 1], span[:, 0], unit))
    indptr = np.searchsorted(unit[by_unit], np.arange(len(units["unit_document"]) + 1))
    return Spans(indptr, span[by_unit], by_unit)


def _own_sentences(units: Arrays) -> NDArray[np.int64]:
    """Return the sentences that are not titles."""
    order, own = sentence_order(units)
    return order[:own]


def _inside(units: Arrays, sentences: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the spans of sentences in the texts of their units, which they may exceed."""
    first = units["unit_bytes"][units["sent_unit"][sentences].astype(np.int64), :1].astype(np.int64)
    inside: NDArray[np.int64] = units["sent_bytes"][sentences].astype(np.int64) - first
    return inside


def _decode(packed: Packed) -> Iterator[str]:
    blob, offsets = packed
    for start, end in pairwise(offsets.tolist()):
        yield blob[start:end].tobytes().decode("utf-8")
