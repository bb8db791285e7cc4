"""Cutting documents into chunks, units and sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack
from ketrag_fast.storage.array_spool import ArraySpool, scratch_folder
from ketrag_fast.systems.shared.rows import offsets_of, strings, strings_out
from ketrag_fast.systems.shared.units_update import (
    lines_of,
    once_a_document,
    pack_metadata,
    update_units,
)
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs
from ketrag_fast.types.locations import MARKS, Locator, is_mark

T = TypeVar("T")
R = TypeVar("R")
Report = Callable[[int, int], bool | None]
Locators = list[tuple[int, Sequence[Locator]]]
"""Rows of documents that have locators, with these."""
_BLOCK: Final = 4 << 20
"""Bytes of documents that are cut together."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return chunks, units and sentences. Spans are in bytes, except `unit_span`, in code points."""
    documents = inputs.documents
    if context.earlier is not None:
        # Also those that are not read: they would no longer be what is published.
        if settings.verify == "sizes":  # the published arrays were not verified either
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

    One block stays in memory; the arrays of several are files that the system may write out.
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
    titles, texts = documents.packed("title"), documents.packed("text")
    rows = list(documents.rows())
    cut = _core.corpus(
        titles,
        texts,
        settings.cut,
        settings.chunk_tokens,
        settings.overlap,
        settings.split_level,
        settings.encoding,
        threads=threads,
        language=settings.language if settings.even_chunks else "english",
        marks=_marks(rows),
        report=report,
    )
    unit_document = cut["chunk_doc"][cut["unit_chunk"]]
    unit_bytes = cut["unit_span"]
    unit_span = _spans_in_documents(cut["unit_chars"], unit_document, rows, len(texts[1]) - 1)
    located = ((row, [one for one in own if not is_mark(one)]) for row, _, own in rows)
    locators: Locators = [(row, own) for row, own in located if own]
    return {
        "document_count": np.array([len(documents)], np.uint64),
        **strings_out("document_ids", documents.packed("id")),
        **strings_out("document_titles", titles),
        "chunk_document": cut["chunk_doc"],
        "chunk_bytes": cut["chunk_span"],
        "chunk_tokens": cut["chunk_tokens"],
        "chunk_units": offsets_of(cut["unit_chunk"], len(cut["chunk_doc"])),
        "unit_chunk": cut["unit_chunk"],
        "unit_document": unit_document,
        "unit_bytes": unit_bytes,
        "unit_span": unit_span,
        "unit_tokens": cut["unit_tokens"],
        **strings_out("unit_before", cut["unit_before"]),
        **strings_out("unit_after", cut["unit_after"]),
        **({"unit_lines": cut["unit_lines"]} if cut["unit_lines"].any() else {}),
        **strings_out("document_gaps", _core.string_gaps(texts, unit_document, unit_bytes)),
        **strings_out("unit_texts", _core.slice_strings(texts, unit_document, unit_bytes)),
        "sent_chunk": cut["sent_chunk"],
        "sent_unit": cut["sent_unit"],
        "sent_bytes": cut["sent_span"],
        "sent_title": cut["sent_title"].astype(np.uint8),
        **pack_locators(locators, len(texts[1]) - 1),
        **pack_metadata(documents.packed("metadata"), documents.packed("id")),
    }, locators


def _marks(rows: Sequence[tuple[int, int, Sequence[Locator]]]) -> NDArray[np.uint32] | None:
    """Return the marks of the readers: row, start and end in its text, number of the kind, value."""
    found = [
        (row, one.start - start, one.end - start, MARKS.index(one.kind), one.value)
        for row, start, own in rows
        for one in own
        if is_mark(one)
    ]
    return np.array(found, np.uint32) if found else None


def cut_new_documents(
    documents: Documents, settings: Settings, context: StageContext, published: Collection[str]
) -> Outputs:
    """Return the arrays of some documents alone; with metadata and lines if `published` arrays have them."""
    cut, _ = cut_documents(documents, settings, context.threads, context.report)
    more = {"document_hashes": documents.hashes()}
    if "unit_lines" in published:
        cut = {**cut, "unit_lines": lines_of(cut)}
    if "document_metadata_offsets" in published:
        rows = len(cut["document_ids_offsets"]) - 1
        more |= strings_out("document_metadata", _metadata_of(cut, rows))
    return {**cut, **more}


class JoinedUnits:
    """The arrays of documents that were cut in blocks, one after another in a spool."""

    _NUMBERED: Final = {
        "chunk_document": "rows",
        "unit_chunk": "chunks",
        "unit_document": "rows",
        "sent_chunk": "chunks",
        "sent_unit": "units",
    }
    """Arrays of numbers, and what they number."""
    _STRINGS: Final = (
        "document_ids",
        "document_titles",
        "document_gaps",
        "unit_texts",
        "unit_before",
        "unit_after",
        "document_metadata",
    )

    def __init__(self, spool: ArraySpool) -> None:
        self._spool = spool
        self._sizes = dict.fromkeys(("documents", "rows", "chunks", "units"), 0)
        self._bytes: dict[str, int] = {}
        self._begun: set[str] = set()
        self._locators: Locators = []
        self._has_metadata = False
        self._has_lines = False

    def add(self, block: Outputs, locators: Locators) -> None:
        """Append the arrays of one block."""
        sizes, rows = self._sizes, len(block["document_ids_offsets"]) - 1
        self._has_metadata |= "document_metadata_blob" in block
        block = {**block, **strings_out("document_metadata", _metadata_of(block, rows))}
        for name in self._STRINGS:
            self._append_strings(name, *strings(block, name))
        for name, of in self._NUMBERED.items():
            self._spool.append(name, block[name] + np.uint32(sizes[of]))
        for name in ("chunk_bytes", "chunk_tokens", "unit_bytes", "unit_span", "unit_tokens"):
            self._spool.append(name, block[name])
        self._has_lines |= "unit_lines" in block
        self._spool.append("unit_lines", lines_of(block))
        for name in ("sent_bytes", "sent_title"):
            self._spool.append(name, block[name])
        self._append_offsets("chunk_units", block["chunk_units"], sizes["units"])
        self._locators += [(sizes["rows"] + row, marks) for row, marks in locators if marks]
        sizes["documents"] += int(block["document_count"][0])
        sizes["rows"] += rows
        sizes["chunks"] += len(block["chunk_document"])
        sizes["units"] += len(block["unit_chunk"])

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
            "document_count": np.array([self._sizes["documents"]], np.uint64),
            **pack_locators(self._locators, self._sizes["rows"]),
        }


def _metadata_of(block: Outputs, rows: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    if "document_metadata_blob" in block:
        return strings(block, "document_metadata")
    empty = np.frombuffer(b"{}" * rows, np.uint8), np.arange(0, 2 * rows + 1, 2, dtype=np.uint64)
    if rows == int(block["document_count"][0]):
        return empty
    return once_a_document(empty, strings(block, "document_ids"))


def _spans_in_documents(
    spans: NDArray[np.uint32],
    owners: NDArray[np.uint32],
    rows: Sequence[tuple[int, int, object]],
    count: int,
) -> NDArray[np.uint32]:
    """Convert spans within sections into spans within their documents."""
    if not any(start for _, start, _ in rows):
        return spans
    starts = np.zeros(count, np.uint32)
    for row, start, _ in rows:
        starts[row] = start
    return spans + starts[owners][:, None]


def pack_locators(rows: Iterable[tuple[int, Sequence[Locator]]], documents: int) -> dict[str, NDArray[Any]]:
    """Return the locators of all documents: for each its range and the number of its label, `["page",12]`.

    Empty if the documents have none, so that indexes of plain texts stay as they were.
    """
    counts = np.zeros(documents + 1, np.uint64)
    number: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    labels: list[int] = []
    for document, locators in rows:
        counts[document + 1] = len(locators)
        for one in locators:
            label = json.dumps([one.kind, one.value], ensure_ascii=False, separators=(",", ":"))
            labels.append(number.setdefault(label, len(number)))
            spans.append((one.start, one.end))
    if not labels:
        return {}
    return {
        "location_indptr": np.cumsum(counts, dtype=np.uint64),
        "location_span": np.array(spans, np.uint32),
        "location_label": np.array(labels, np.uint32),
        **strings_out("location_labels", pack(list(number))),
    }
