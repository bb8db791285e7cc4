"""Reuse rows of the published generation after some documents changed.

A stage with `context.earlier` computes rows of the new documents only, and numbers them after the published
rows. One list of row numbers then puts both in the current order.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InternalError
from ketrag_fast.systems.shared.rows import U8, U32, U64, Arrays, csr, documents_of, sentence_order, strings

if TYPE_CHECKING:
    from ketrag_fast.systems.spec.stage import Earlier

GONE = np.uint32(2**32 - 1)
_AS_THEY_ARE = np.zeros(0, np.uint32)
_I64 = NDArray[np.int64]


class Changes:
    """The current order of chunks, units and sentences, as numbers of published rows, then of new rows.

    `before` and `new` are the arrays of the stage "units", published and of the new documents alone; `row`
    is the previous row of each current document, or -1.
    """

    def __init__(self, before: Arrays, new: Arrays, row: _I64) -> None:
        self.before = before
        self.new = new
        self.row = row
        self._owners = documents_of(before)[0], documents_of(new)[0]

    @classmethod
    def of(cls, earlier: Earlier, now: Arrays) -> Changes:
        """Return the changes for a stage that needs "units"; `now` are its current arrays."""
        return cls(earlier.needs["units"], _new_document_units(now, earlier.row), earlier.row)

    @property
    def fresh(self) -> list[int]:
        """The numbers of the new documents."""
        found: list[int] = np.flatnonzero(self.row < 0).tolist()
        return found

    @cached_property
    def documents(self) -> U32:
        """Rows of documents; one that is cut into sections has several."""
        return self._order(*self._owners)

    @cached_property
    def chunks(self) -> U32:
        """Rows of chunks."""
        return self._order(*self._of("chunk_document"))

    @cached_property
    def units(self) -> U32:
        """Rows of units."""
        return self._order(*self._of("unit_document"))

    @cached_property
    def sentences(self) -> U32:
        """Rows of sentences, titles among them."""
        before, new = (units["chunk_document"][units["sent_chunk"]] for units in (self.before, self.new))
        return self._order(self._owners[0][before], self._owners[1][new])

    def _of(self, name: str) -> tuple[U32, U32]:
        return self._owners[0][self.before[name]], self._owners[1][self.new[name]]

    def _order(self, before: U32, new: U32) -> U32:
        """`before` and `new` are the documents of rows, ascending."""
        kept = self.row >= 0
        starts = np.searchsorted(before, np.arange(int(self.before["document_count"][0]) + 1))
        fresh = np.searchsorted(new, np.arange(int((~kept).sum()) + 1)) + len(before)
        first = np.empty(len(self.row), np.int64)
        count = np.empty(len(self.row), np.int64)
        first[kept], count[kept] = starts[self.row[kept]], np.diff(starts)[self.row[kept]]
        first[~kept], count[~kept] = fresh[:-1], np.diff(fresh)
        ends = np.cumsum(count)
        total = int(ends[-1]) if len(ends) else 0
        return (np.repeat(first - (ends - count), count) + np.arange(total)).astype(np.uint32)


def _new_document_units(units: Arrays, row: _I64) -> dict[str, NDArray[Any]]:
    """Return the arrays "units" of the new documents alone, those that other stages need."""
    if (row >= 0).all():
        others = ("chunk_document", "chunk_bytes", "unit_chunk", "unit_document", "unit_bytes")
        of_sentences = ("sent_chunk", "sent_unit", "sent_bytes", "sent_title")
        return {
            "document_count": np.zeros(1, np.uint64),
            "document_ids_blob": units["document_ids_blob"][:0],
            "document_ids_offsets": units["document_ids_offsets"][:1],
            **{name: units[name][:0] for name in (*others, *of_sentences)},
        }
    owner = documents_of(units)[0]
    documents = row[owner] < 0
    chunks = documents[units["chunk_document"]]
    texts = chunks[units["unit_chunk"]]
    sentences = chunks[units["sent_chunk"]]
    rows, cuts, pieces = (np.cumsum(mask) - 1 for mask in (documents, chunks, texts))
    return {
        "document_count": np.array([(row < 0).sum()], np.uint64),
        **_mask_strings(units, "document_ids", documents),
        "chunk_document": rows[units["chunk_document"][chunks]].astype(np.uint32),
        "chunk_bytes": units["chunk_bytes"][chunks],
        "unit_chunk": cuts[units["unit_chunk"][texts]].astype(np.uint32),
        "unit_document": rows[units["unit_document"][texts]].astype(np.uint32),
        "unit_bytes": units["unit_bytes"][texts],
        "sent_chunk": cuts[units["sent_chunk"][sentences]].astype(np.uint32),
        "sent_unit": pieces[units["sent_unit"][sentences]].astype(np.uint32),
        "sent_bytes": units["sent_bytes"][sentences],
        "sent_title": units["sent_title"][sentences],
    }


def _mask_strings(units: Arrays, name: str, mask: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    blob, offsets = _core.take_strings(strings(units, name), np.flatnonzero(mask).astype(np.uint32))
    return {f"{name}_blob": blob, f"{name}_offsets": offsets}


def rows_of(
    first: tuple[U64, U32], second: tuple[U64, U32], rows: U32, numbers: tuple[U32, U32] | None = None
) -> tuple[U64, U32]:
    """Return compressed rows of both in the order of `rows`, renumbering their values by `numbers`."""
    one, two = numbers or (_AS_THEY_ARE, _AS_THEY_ARE)
    return _core.splice_rows(first, one, second, two, rows)


def strings_of(first: tuple[U8, U64], second: tuple[U8, U64], rows: U32) -> tuple[U8, U64]:
    """Return strings of both in the order of `rows`."""
    return _core.splice_strings(first, second, rows)


def dense_of(first: NDArray[Any], second: NDArray[Any], rows: U32) -> NDArray[Any]:
    """Return rows of both arrays in the order of `rows`. Raises InternalError if their shapes differ."""
    if first.shape[1:] != second.shape[1:] or first.dtype != second.dtype:
        raise InternalError(f"rows of {first.dtype}{first.shape[1:]} and {second.dtype}{second.shape[1:]}")
    if not len(second):
        return first[rows]
    kept = rows < len(first)
    out = np.empty((len(rows), *first.shape[1:]), first.dtype)
    out[kept] = first[rows[kept]]
    out[~kept] = second[rows[~kept] - len(first)]
    return out


def columns_in_use(arrays: Arrays, name: str, turned: str, rows: U32) -> NDArray[np.uint8]:
    """Return for each column of `name` whether a reused row has it; `turned` is the transpose."""
    indptr, indices = csr(arrays, name)
    gone = np.ones(len(indptr) - 1, np.bool_)
    gone[rows[rows < len(gone)]] = False
    counts = np.diff(arrays[f"{turned}_indptr"].astype(np.int64))
    for row in np.flatnonzero(gone).tolist():
        counts[indices[int(indptr[row]) : int(indptr[row + 1])]] -= 1  # each value at most once per row
    return (counts > 0).astype(np.uint8)


def sentence_rows(changes: Changes, now: Arrays) -> U32:
    """Return the current `sentence_order` as numbers of published rows, then of new rows."""
    order, _ = sentence_order(now)
    before, new = sentence_order(changes.before)[0], sentence_order(changes.new)[0]
    count = len(changes.before["sent_title"])
    place = np.full(count + len(changes.new["sent_title"]), -1, np.int64)
    place[before] = np.arange(len(before))
    place[new + count] = np.arange(len(new)) + len(before)
    found = place[changes.sentences[order]]
    if len(found) and found.min() < 0:
        raise InternalError("a reused sentence has no published row")
    return found.astype(np.uint32)
