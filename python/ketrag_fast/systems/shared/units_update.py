"""The stage "units" after some documents changed: only new documents are cut, the rest is reused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.shared.row_reuse import Changes, dense_of, rows_of, strings_of
from ketrag_fast.systems.shared.rows import U32, Arrays, offsets_of, strings, strings_out
from ketrag_fast.systems.spec.stage import Earlier


def update_units(new: Arrays, earlier: Earlier, hashes: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all documents from the published ones and those of the new documents."""
    before = earlier.arrays
    changes = Changes(before, new, earlier.row)

    def dense(rows: U32, *names: str) -> dict[str, NDArray[Any]]:
        return {name: dense_of(before[name], new[name], rows) for name in names}

    def packed(rows: U32, *names: str) -> dict[str, NDArray[Any]]:
        made: dict[str, NDArray[Any]] = {}
        for name in names:
            made |= strings_out(name, strings_of(strings(before, name), strings(new, name), rows))
        return made

    def moved(name: str, rows: U32, over: U32, count: int) -> U32:
        """Numbers of rows of another kind, of which there were `count`; now they come in the order `over`."""
        joined: U32 = before[name]
        if len(new[name]):
            joined = np.concatenate([joined, new[name] + np.uint32(count)])
        place = np.empty(int(over.max()) + 1 if len(over) else 0, np.uint32)
        place[over] = np.arange(len(over), dtype=np.uint32)
        found: U32 = place[joined[rows]]
        return found

    documents, chunks, units, sentences = changes.documents, changes.chunks, changes.units, changes.sentences
    counts = len(before["document_ids_offsets"]) - 1, len(before["chunk_document"]), len(before["unit_chunk"])
    unit_chunk = moved("unit_chunk", units, chunks, counts[1])
    return {
        "document_count": np.array([len(hashes)], np.uint64),
        "document_hashes": hashes,
        **packed(documents, "document_ids", "document_titles", "document_gaps"),
        "chunk_document": moved("chunk_document", chunks, documents, counts[0]),
        **dense(chunks, "chunk_bytes", "chunk_tokens"),
        "chunk_units": offsets_of(unit_chunk, len(chunks)),
        "unit_chunk": unit_chunk,
        "unit_document": moved("unit_document", units, documents, counts[0]),
        **dense(units, "unit_bytes", "unit_span", "unit_tokens"),
        **packed(units, "unit_texts", "unit_before", "unit_after"),
        **_update_lines(before, new, units),
        "sent_chunk": moved("sent_chunk", sentences, chunks, counts[1]),
        "sent_unit": moved("sent_unit", sentences, units, counts[2]),
        **dense(sentences, "sent_bytes", "sent_title"),
        **_update_locators(before, new, documents),
        **_update_metadata(before, new, documents),
    }


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
    """As `located` of all rows: labels are numbered in the order in which they come."""

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
