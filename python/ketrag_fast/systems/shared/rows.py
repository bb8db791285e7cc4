"""Read and write the arrays of a stage: compressed rows, packed strings, and the languages of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.stored_rows import language_arrays

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Arrays = Mapping[str, NDArray[Any]]


def strings(arrays: Arrays, name: str) -> tuple[U8, U64]:
    """`NAME_blob` and `NAME_offsets`."""
    return arrays[f"{name}_blob"], arrays[f"{name}_offsets"]


def read_strings(arrays: Arrays, name: str) -> list[str]:
    """Return the strings of `NAME_blob` and `NAME_offsets`."""
    return unpack(*strings(arrays, name))


def strings_out(name: str, packed: tuple[U8, U64]) -> dict[str, NDArray[Any]]:
    """The inverse of `strings`."""
    return {f"{name}_blob": packed[0], f"{name}_offsets": packed[1]}


def texts_in_context(units: Arrays) -> tuple[U8, U64]:
    """Return the texts of the units, each after the context of the block that it continues."""
    texts, before = strings(units, "unit_texts"), strings(units, "unit_before")
    return _core.append_strings(before, texts) if len(before[0]) else texts


def csr(arrays: Arrays, name: str) -> tuple[U64, U32]:
    """`NAME_indptr` and `NAME_indices`."""
    return arrays[f"{name}_indptr"], arrays[f"{name}_indices"]


def csr_out(name: str, rows: tuple[U64, U32]) -> dict[str, NDArray[Any]]:
    """The inverse of `csr`."""
    return {f"{name}_indptr": rows[0], f"{name}_indices": rows[1]}


def lengths(indptr: U64) -> NDArray[np.int64]:
    """The length of each row."""
    ends = indptr.astype(np.int64)
    return ends[1:] - ends[:-1]


def select_rows(rows: tuple[U64, U32], wanted: NDArray[np.int64]) -> tuple[U64, U32]:
    """Return the given rows, in the given order."""
    indptr, indices = rows
    starts = indptr[:-1][wanted].astype(np.int64)
    lengths = indptr[1:][wanted].astype(np.int64) - starts
    out = np.zeros(len(wanted) + 1, np.uint64)
    np.cumsum(lengths, out=out[1:])
    # Position p of row r comes from starts[r] + (p - out[r]).
    shift = np.repeat(starts - out[:-1].astype(np.int64), lengths)
    return out, indices[shift + np.arange(len(shift))]


def offsets_of(owners: U32, count: int) -> U64:
    """Return count + 1 offsets of the runs of each owner; `owners` must be ascending."""
    return np.searchsorted(owners, np.arange(count + 1)).astype(np.uint64)


def whole_chunks(units: Arrays) -> bool:
    """Return whether every unit is a whole chunk, in order."""
    owner = units["unit_chunk"]
    same = len(owner) == len(units["chunk_document"]) and np.array_equal(owner, np.arange(len(owner)))
    return same and np.array_equal(units["unit_bytes"], units["chunk_bytes"])


def word_rows(
    texts: tuple[U8, U64],
    vocabulary: tuple[U8, U64],
    language: str,
    languages: Sequence[int],
    threads: int,
) -> tuple[U64, U32, U32]:
    """Return (indptr, ascending word ids, counts) of texts; words outside the vocabulary are ignored.

    The texts are tokenised in all `languages` of the index (default English), because a name has no known
    language.
    """
    words, _, indptr = _core.tokenise(texts, language, threads, languages=languages)
    number = {word: place for place, word in enumerate(unpack(*vocabulary))}
    ids = np.array([number.get(word, -1) for word in unpack(*words)], np.int64)
    count = len(indptr) - 1
    owner = np.repeat(np.arange(count), indptr[1:].astype(np.int64) - indptr[:-1].astype(np.int64))[ids >= 0]
    pairs, repeats = np.unique(owner * max(len(number), 1) + ids[ids >= 0], return_counts=True)
    out = np.searchsorted(pairs, np.arange(count + 1) * max(len(number), 1)).astype(np.uint64)
    return out, (pairs % max(len(number), 1)).astype(np.uint32), repeats.astype(np.uint32)


def documents_of(units: Arrays) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the document number of each row of `document_ids`, and the first row of each document.

    A document with sections has a row for each of them, all with its id.
    """
    blob, offsets = units["document_ids_blob"], units["document_ids_offsets"]
    rows, count = len(offsets) - 1, int(units["document_count"][0])
    if rows == count:
        return np.arange(rows, dtype=np.uint32), np.arange(rows)
    names = unpack(blob, offsets)
    fresh = np.array([at == 0 or name != names[at - 1] for at, name in enumerate(names)], bool)
    return (np.cumsum(fresh) - 1).astype(np.uint32), np.flatnonzero(fresh)


def unit_owners(units: Arrays) -> NDArray[np.uint32]:
    """Return the document number of each unit."""
    return documents_of(units)[0][units["unit_document"]]


def sentence_order(units: Arrays) -> tuple[NDArray[np.int64], int]:
    """Return the order of sentences in words and vectors, and how many of them are not titles.

    Sentences of texts come first, then one title for each document that has one.
    """
    title = units["sent_title"].astype(bool)
    titles = np.flatnonzero(title)
    owners = units["chunk_document"][units["sent_chunk"][titles]]
    first_of_document = np.unique(owners, return_index=True)[1]
    own = np.flatnonzero(~title)
    return np.concatenate([own, titles[first_of_document]]), len(own)


def codes_of_rows(stages: Mapping[str, Arrays]) -> list[str] | None:
    """Return the ISO 639-1 code for each row of the documents' arrays; None if every text is English.

    Rows without units count as English. Of languages with equally many units, the first in the core's table
    is returned.
    """
    found = language_arrays(stages)
    if found is None:
        return None
    owners, numbers = found
    names = [code for code, _ in _core.languages()]
    rows = len(stages["units"]["document_ids_offsets"]) - 1
    cells = owners.astype(np.int64) * len(names) + numbers
    counts = np.bincount(cells, minlength=rows * len(names)).reshape(rows, len(names))
    return [names[number] for number in counts.argmax(axis=1).tolist()]
