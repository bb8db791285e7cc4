"""Cutting documents into chunks, units and sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack
from ketrag_fast.systems.shared.rows import offsets_of, strings_out
from ketrag_fast.systems.shared.units_update import pack_metadata, update_units
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs
from ketrag_fast.types.locations import Locator


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return chunks, units and sentences. Spans are in bytes, except `unit_span`, in code points."""
    documents = inputs.documents
    if context.earlier is not None:
        fresh = np.flatnonzero(context.earlier.row < 0).tolist()
        return update_units(
            _cut_documents(documents.only(fresh), settings, context), context.earlier, documents.hashes()
        )
    return {**_cut_documents(documents, settings, context), "document_hashes": documents.hashes()}


def _cut_documents(documents: Documents, settings: Settings, context: StageContext) -> Outputs:
    titles, texts = documents.packed("title"), documents.packed("text")
    cut = _core.corpus(
        titles,
        texts,
        settings.cut,
        settings.chunk_tokens,
        settings.overlap,
        settings.split_level,
        settings.encoding,
        threads=context.threads,
        language=settings.language if settings.even_chunks else "english",
        report=context.report,
    )
    unit_document = cut["chunk_doc"][cut["unit_chunk"]]
    unit_bytes = cut["unit_span"]
    rows = list(documents.rows())
    unit_span = _spans_in_documents(cut["unit_chars"], unit_document, rows, len(texts[1]) - 1)
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
        **strings_out("document_gaps", _core.string_gaps(texts, unit_document, unit_bytes)),
        **strings_out("unit_texts", _core.slice_strings(texts, unit_document, unit_bytes)),
        "sent_chunk": cut["sent_chunk"],
        "sent_unit": cut["sent_unit"],
        "sent_bytes": cut["sent_span"],
        "sent_title": cut["sent_title"].astype(np.uint8),
        **pack_locators(((row, marks) for row, _, marks in rows), len(texts[1]) - 1),
        **pack_metadata(documents.packed("metadata")),
    }


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
