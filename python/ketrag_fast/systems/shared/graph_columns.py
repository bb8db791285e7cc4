"""Columns of graph tables, read from packed strings, compressed rows and arrays (`spec.drawing`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.systems.shared.rows import Arrays, csr, lengths, strings
from ketrag_fast.systems.spec.drawing import Column, ColumnType

I64 = NDArray[np.int64]
LABEL = 80
"""The maximum length in characters of the name of a node that is a whole text."""


def texts_at(packed: tuple[NDArray[np.uint8], NDArray[np.uint64]], rows: I64) -> list[str]:
    """Return some of the packed strings."""
    blob, offsets = packed
    data = np.ascontiguousarray(blob).data
    starts, ends = offsets[rows].tolist(), offsets[rows + 1].tolist()
    return [str(data[first:last], "utf-8") for first, last in zip(starts, ends, strict=True)]


def text_column(arrays: Arrays, name: str) -> Column:
    """Return the column of `NAME_blob` and `NAME_offsets`."""
    return Column("text", lambda rows: texts_at(strings(arrays, name), rows))


def number_column(values: NDArray[Any]) -> Column:
    """Return the column of an array of integers or floats."""
    kind: ColumnType = "float" if values.dtype.kind == "f" else "int"
    return Column(kind, lambda rows: values[rows].tolist())


def ids_column(arrays: Arrays, name: str) -> Column:
    """Return the column of `NAME_indptr` and `NAME_indices`."""
    return Column("ids", lambda rows: lists_at(csr(arrays, name), rows))


def lists_at(rows: tuple[NDArray[np.uint64], NDArray[np.uint32]], wanted: I64) -> list[list[int]]:
    """Return some compressed rows as lists."""
    indptr, indices = rows
    if len(wanted) and bool((np.diff(wanted) == 1).all()):  # consecutive rows, as in a whole export
        ends = indptr[int(wanted[0]) : int(wanted[-1]) + 2].astype(np.int64)
        run: list[int] = indices[ends[0] : ends[-1]].tolist()
        return [run[first:last] for first, last in pairwise((ends - ends[0]).tolist())]
    starts, ends = indptr[wanted].tolist(), indptr[wanted + 1].tolist()
    return [indices[first:last].tolist() for first, last in zip(starts, ends, strict=True)]


def blocks_column(
    kind: ColumnType, empty: Any, blocks: Sequence[tuple[int, Callable[[I64], Sequence[Any]] | None]]
) -> Column:
    """Return a column that concatenates several blocks, each with its length and its reader.

    Rows of a block without a reader have the value `empty`.
    """
    ends = np.cumsum([0, *(count for count, _ in blocks)])

    def read(rows: I64) -> list[Any]:
        owner = np.searchsorted(ends, rows, "right") - 1
        out: list[Any] = [empty] * len(rows)
        for number, (_, reader) in enumerate(blocks):
            places = np.flatnonzero(owner == number)
            if reader is None or not len(places):
                continue
            for place, value in zip(places.tolist(), reader(rows[places] - ends[number]), strict=True):
                out[place] = value
        return out

    return Column(kind, read)


def shortened(read: Callable[[I64], Sequence[str]]) -> Callable[[I64], list[str]]:
    """Return a reader of texts that are cut to `LABEL` characters, on one line, to serve as names."""

    def cut(text: str) -> str:
        line = " ".join(text[: 4 * LABEL].split())
        return line if len(line) <= LABEL else f"{line[: LABEL - 1].rstrip()}…"

    return lambda rows: [cut(text) for text in read(rows)]


def once(indptr: NDArray[np.uint64], indices: NDArray[np.uint32]) -> tuple[I64, NDArray[np.uint32]]:
    """Return the position of each edge of a symmetric graph at its smaller end, and that end."""
    owner = np.repeat(np.arange(len(indptr) - 1, dtype=np.uint32), lengths(indptr))
    places = np.flatnonzero(owner < indices)
    return places, owner[places]


def owners(indptr: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the row of each entry of compressed rows."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.uint32), lengths(indptr))


def constant(count: int) -> NDArray[np.uint8]:
    """Return the kinds of rows that all have the same kind."""
    return np.zeros(count, np.uint8)
