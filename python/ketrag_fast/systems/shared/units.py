"""Cut documents into chunks, units and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.storage.array_spool import ArraySpool, scratch_folder
from ketrag_fast.systems.shared import UNITS
from ketrag_fast.systems.shared.cutting import Locators, Report, cut_rows, locations
from ketrag_fast.systems.shared.row_reuse import Changes, dense_of, rows_of, strings_of
from ketrag_fast.systems.shared.rows import U32, Arrays, offsets_of, strings, strings_out
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Earlier, Outputs, StageContext, StageInputs
from ketrag_fast.types.locations import Locator

T = TypeVar("T")
R = TypeVar("R")
_BLOCK: Final = 4 << 20
"""Bytes of documents cut at once."""
# A new array of units is declared once, in `UNITS`. Cutting in blocks and reuse after a change treat it by
# its shape: rows are copied, numbers of rows of another kind are renumbered, and strings are packed again.
# For each array that may be missing there is a function below.
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


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return chunks, units and sentences. Spans are in bytes, except `unit_span`, in code points."""
    documents = inputs.documents
    if context.earlier is not None:
        # Documents that are not cut again must still equal the published ones.
        if settings.verify == "sizes":  # the published arrays were not verified
            documents.verify()
        else:
            documents.verify_unchanged(context.earlier.arrays, context.earlier.row)
        fresh = np.flatnonzero(context.earlier.row < 0).tolist()
        new, _ = cut_documents(documents.only(fresh), settings, context.threads, context.report)
        return update_units(new, context.earlier, documents.hashes())
    made = context.ahead.take(documents.contents()) if context.ahead is not None else None
    if made is None:
        made = _cut_in_blocks(documents, settings, context)
    else:
        documents.check_order()
        context.report(len(documents), len(documents))
        context.check()
    return {**made, "document_hashes": documents.hashes()}


def _cut_in_blocks(documents: Documents, settings: Settings, context: StageContext) -> Outputs:
    """Cut some documents after the others, so that memory does not grow with their number.

    A single block stays in memory; with several blocks, the arrays are files that the system can swap out.
    """
    blocks = iter(documents.blocks(_BLOCK))
    first, second = next(blocks, documents), next(blocks, None)
    if second is None:
        return cut_documents(first, settings, context.threads, context.report)[0]
    total, done = len(documents), 0

    def report(part: int, _: int) -> bool | None:
        return context.report(done + part, total)

    with scratch_folder(context.scratch) as folder, ArraySpool(folder) as spool:
        joined = JoinedUnits(spool)
        work = partial(cut_documents, settings=settings, threads=context.threads, report=report)
        for block, made in _run_ahead(work, chain([first, second], blocks), context.threads):
            joined.add(*made)
            done += len(block)
            context.check()
        return joined.finish()


def _run_ahead(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[tuple[T, R]]:
    """Yield each item with the result of `work`, which runs in a thread while the next item is read."""
    if threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # imported here because a delta needs none

    before: tuple[T, Future[R]] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="ketrag-cuts") as pool:
        for item in items:
            if before is not None:
                yield before[0], before[1].result()
            before = item, pool.submit(work, item)
        if before is not None:
            yield before[0], before[1].result()


def cut_documents(
    documents: Documents, settings: Settings, threads: int, report: Report
) -> tuple[Outputs, Locators]:
    """Return the arrays of some documents, and their rows with locators."""
    cut, locators = cut_rows(documents, settings, threads, report)
    return cut.arrays(), locators


class JoinedUnits:
    """The arrays of documents that were cut in blocks, one after another in a spool."""

    def __init__(self, spool: ArraySpool) -> None:
        self._spool = spool
        self._sizes, self._documents = dict.fromkeys(SIZES, 0), 0
        self._bytes: dict[str, int] = {}
        self._begun: set[str] = set()
        self._locators: Locators = []
        self._has_metadata = False
        self._has_lines = False

    def add(self, block: Outputs, locators: Locators) -> None:
        """Append the arrays of one block."""
        before, rows = dict(self._sizes), len(block["document_ids_offsets"]) - 1
        for size in SIZES:
            own = row_arrays(size)
            for name in own.texts:
                self._append_strings(name, *strings(block, name))
            for name, of in own.numbered.items():
                self._spool.append(name, block[name] + np.uint32(before[of]))
            for name in own.dense:
                self._spool.append(name, block[name])
            self._sizes[size] += count_rows(block, size)
        self._has_metadata |= "document_metadata_blob" in block
        self._append_strings("document_metadata", *_metadata_of(block, rows))
        self._has_lines |= "unit_lines" in block
        self._spool.append("unit_lines", lines_of(block))
        self._append_offsets("chunk_units", block["chunk_units"], before["units"])
        self._locators += [(before["documents"] + row, marks) for row, marks in locators if marks]
        self._documents += int(block["document_count"][0])

    def _append_strings(self, name: str, blob: NDArray[np.uint8], offsets: NDArray[np.uint64]) -> None:
        before = self._bytes.get(name, 0)
        self._spool.append(f"{name}_blob", blob)
        self._append_offsets(f"{name}_offsets", offsets, before)
        self._bytes[name] = before + len(blob)

    def _append_offsets(self, name: str, offsets: NDArray[np.uint64], before: int) -> None:
        if name in self._begun:
            offsets = offsets[1:]
        self._begun.add(name)
        self._spool.append(name, offsets + np.uint64(before))

    def finish(self) -> Outputs:
        """Return the arrays of all blocks."""
        arrays = self._spool.finish()
        if not self._has_metadata:
            del arrays["document_metadata_blob"], arrays["document_metadata_offsets"]
        if not self._has_lines:
            del arrays["unit_lines"]
        return {
            **arrays,
            "document_count": np.array([self._documents], np.uint64),
            **pack_locators(self._locators, self._sizes["documents"]),
        }


def _metadata_of(block: Outputs, rows: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    if "document_metadata_blob" in block:
        return strings(block, "document_metadata")
    empty = np.frombuffer(b"{}" * rows, np.uint8), np.arange(0, 2 * rows + 1, 2, dtype=np.uint64)
    if rows == int(block["document_count"][0]):
        return empty
    return once_a_document(empty, strings(block, "document_ids"))


def pack_locators(rows: Iterable[tuple[int, Sequence[Locator]]], documents: int) -> dict[str, NDArray[Any]]:
    """Return the locators of all documents: for each its range and the number of its label, `["page",12]`.

    Empty if the documents have none, so that indexes of plain texts stay as they were.
    """
    ends, spans, labels, (names, name_ends) = locations(rows, documents)
    if not labels:
        return {}
    return {
        "location_indptr": np.frombuffer(ends, np.uint64),
        "location_span": np.frombuffer(spans, np.uint32).reshape(-1, 2),
        "location_label": np.frombuffer(labels, np.uint32),
        **strings_out(
            "location_labels", (np.frombuffer(names, np.uint8), np.frombuffer(name_ends, np.uint64))
        ),
    }


def update_units(new: Arrays, earlier: Earlier, hashes: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all documents from the published ones and those of the new documents."""
    before = earlier.arrays
    changes = Changes(before, new, earlier.row)
    documents, chunks, units = changes.documents, changes.chunks, changes.units
    orders = dict(zip(SIZES, (documents, chunks, units, changes.sentences), strict=True))
    made: dict[str, NDArray[Any]] = {}
    for size, rows in orders.items():
        own = row_arrays(size)
        made |= {name: dense_of(before[name], new[name], rows) for name in own.dense}
        for name, of in own.numbered.items():
            made[name] = _renumber(before[name], new[name], rows, orders[of], count_rows(before, of))
        for name in own.texts:
            made |= strings_out(name, strings_of(strings(before, name), strings(new, name), rows))
    return {
        **made,
        "document_count": np.array([len(hashes)], np.uint64),
        "document_hashes": hashes,
        "chunk_units": offsets_of(made["unit_chunk"], len(chunks)),
        **_update_lines(before, new, units),
        **_update_locators(before, new, documents),
        **_update_metadata(before, new, documents),
    }


def _renumber(before: U32, new: U32, rows: U32, over: U32, count: int) -> U32:
    """Return numbers of rows of another kind, of which there were `count`, in their new order `over`."""
    joined = np.concatenate([before, new + np.uint32(count)]) if len(new) else before
    place = np.empty(int(over.max()) + 1 if len(over) else 0, np.uint32)
    place[over] = np.arange(len(over), dtype=np.uint32)
    found: U32 = place[joined[rows]]
    return found


def lines_of(units: Arrays) -> NDArray[np.uint32]:
    """Return the first and last line of the source of each unit, 0 if unknown."""
    found = units.get("unit_lines")
    return np.zeros((len(units["unit_tokens"]), 2), np.uint32) if found is None else found


def _update_lines(before: Arrays, new: Arrays, rows: U32) -> dict[str, NDArray[Any]]:
    if "unit_lines" not in before and "unit_lines" not in new:
        return {}
    made = dense_of(lines_of(before), lines_of(new), rows)
    return {"unit_lines": made} if made.any() else {}


def _update_metadata(before: Arrays, new: Arrays, rows: U32) -> dict[str, NDArray[Any]]:
    if "document_metadata_blob" not in before and "document_metadata_blob" not in new:
        return {}

    def of(units: Arrays) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        if "document_metadata_blob" in units:
            return strings(units, "document_metadata")
        return pack(["{}"] * (len(units["document_ids_offsets"]) - 1))

    ids = strings_of(strings(before, "document_ids"), strings(new, "document_ids"), rows)
    return pack_metadata(strings_of(of(before), of(new), rows), ids)


def _update_locators(before: Arrays, new: Arrays, rows: U32) -> dict[str, NDArray[Any]]:
    """Return the locators of all rows; labels are numbered by first occurrence."""

    def of(units: Arrays) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32], list[str]]:
        if "location_indptr" in units:
            labels = unpack(*strings(units, "location_labels"))
            return units["location_indptr"], units["location_span"], units["location_label"], labels
        count = len(units["document_ids_offsets"])
        none = np.zeros(0, np.uint32)
        return np.zeros(count, np.uint64), none.reshape(0, 2), none, []

    first, second = of(before), of(new)
    names = list(dict.fromkeys([*first[3], *second[3]]))
    number = {name: at for at, name in enumerate(names)}
    spans = np.concatenate([first[1], second[1]])
    labels = [np.array([number[name] for name in part[3]], np.uint32)[part[2]] for part in (first, second)]
    ids = np.arange(len(spans), dtype=np.uint32)
    indptr, order = rows_of((first[0], ids[: len(first[1])]), (second[0], ids[len(first[1]) :]), rows)
    if not len(order):
        return {}
    found, at, inverse = np.unique(np.concatenate(labels)[order], return_index=True, return_inverse=True)
    by_first = np.argsort(at)
    place = np.empty(len(found), np.uint32)
    place[by_first] = np.arange(len(found), dtype=np.uint32)
    return {
        "location_indptr": indptr,
        "location_span": spans[order],
        "location_label": place[inverse],
        **strings_out("location_labels", pack([names[int(found[k])] for k in by_first])),
    }


def pack_metadata(
    metadata: tuple[NDArray[np.uint8], NDArray[np.uint64]], ids: tuple[NDArray[np.uint8], NDArray[np.uint64]]
) -> dict[str, NDArray[Any]]:
    """Return the metadata of all documents as JSON, for filters; empty if there is none.

    `ids` has the document of each row. A document with sections has its metadata in the first of its rows;
    the others are empty.
    """
    if int(np.max(np.diff(metadata[1].astype(np.int64)), initial=0)) <= len("{}"):
        return {}
    return strings_out("document_metadata", once_a_document(metadata, ids))


def once_a_document(
    metadata: tuple[NDArray[np.uint8], NDArray[np.uint64]], ids: tuple[NDArray[np.uint8], NDArray[np.uint64]]
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return the metadata of rows with an empty string for every row but the first of a document."""
    names = unpack(*ids)
    again = [at > 0 and name == names[at - 1] for at, name in enumerate(names)]
    if not any(again):
        return metadata
    rows = unpack(*metadata)
    return pack(["" if repeats else row for row, repeats in zip(rows, again, strict=True)])
