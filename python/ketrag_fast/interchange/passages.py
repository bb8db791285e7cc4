"""The documents, chunks and units that an exported part of a graph comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.index import Index
from ketrag_fast.interchange.graph_part import BATCH, GraphPart
from ketrag_fast.storage.file_records import REPAIR
from ketrag_fast.systems.shared.graph_columns import texts_at
from ketrag_fast.systems.shared.rows import documents_of, strings, unit_owners
from ketrag_fast.types import Document

I64 = NDArray[np.int64]
_MOST_TEXT: Final = 4_000_000
"""Characters of documents that are in memory at a time, apart from the last document."""


class Passages:
    """The units of a part of a graph, and their chunks and documents; all of them for a whole graph."""

    def __init__(self, index: Index, part: GraphPart) -> None:
        self._index = index
        self._units: Mapping[str, NDArray[Any]] = index.inspect.arrays()["units"]
        self._part = part
        self.owners = unit_owners(self._units)
        self.document_rows = documents_of(self._units)[1].astype(np.int64)

    @cached_property
    def units(self) -> I64:
        """The numbers of the units, ascending."""
        count = len(self._units["unit_tokens"])
        if self._part.whole:
            return np.arange(count)
        inside = np.zeros(count, np.bool_)
        for nodes in self._part.node_rows(("units",)):
            for own in nodes.columns.get("units", ()):
                inside[own] = True
        for edges in self._part.edge_rows(("units",)):
            for own in edges.columns.get("units", ()):
                inside[own] = True
        return np.flatnonzero(inside)

    @cached_property
    def document_numbers(self) -> I64:
        """The numbers of the documents, ascending."""
        if self._part.whole:
            return np.arange(len(self.document_rows))
        return np.unique(self.owners[self.units]).astype(np.int64)

    @cached_property
    def unit_ends(self) -> I64:
        """For each document of the index the position of its first unit in `units`, and their number."""
        return np.searchsorted(self.owners[self.units], np.arange(len(self.document_rows) + 1))

    def unit_batches(self) -> Iterator[tuple[I64, list[str], list[int], NDArray[np.uint32]]]:
        """Yield numbers, texts, token counts and documents of the units."""
        for first in range(0, len(self.units), BATCH):
            ids = self.units[first : first + BATCH]
            texts = texts_at(strings(self._units, "unit_texts"), ids)
            yield ids, texts, self._units["unit_tokens"][ids].tolist(), self.owners[ids]

    def ids(self, documents: NDArray[Any]) -> list[str]:
        """Return the ids of documents, by number."""
        return texts_at(strings(self._units, "document_ids"), self.document_rows[documents])

    def document_batches(self) -> Iterator[tuple[list[int], list[Document]]]:
        """Yield numbers and documents.

        Raises IndexMissing, IndexLocked as `Inspection.stored`, IndexDamaged if the tables differ.
        """
        wanted = np.zeros(len(self.document_rows), np.bool_)
        wanted[self.document_numbers] = True
        numbers: list[int] = []
        held: list[Document] = []
        size = 0
        for number, document in enumerate(self._index.inspect.stored()):
            if number >= len(wanted) or document.id != self.ids(np.array([number]))[0]:
                raise IndexDamaged(
                    f"the stored documents of {self._index.path} differ from its generation", hint=REPAIR
                )
            if not wanted[number]:
                continue
            numbers.append(number)
            held.append(document)
            size += len(document.text)
            if size > _MOST_TEXT or len(held) >= BATCH:
                yield numbers, held
                numbers, held, size = [], [], 0
        if held:
            yield numbers, held

    def json_rows(self) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield batches of objects: documents, then chunks, then units."""
        for numbers, documents in self.document_batches():
            pairs = zip(numbers, documents, strict=True)
            yield [
                {
                    "document": number,
                    "id": one.id,
                    "title": one.title,
                    "text": one.text,
                    "metadata": dict(one.metadata),
                }
                for number, one in pairs
            ]
        chunks = np.unique(self._units["unit_chunk"][self.units]).astype(np.int64)
        owners = documents_of(self._units)[0]
        for first in range(0, len(chunks), BATCH):
            ids = chunks[first : first + BATCH]
            rows = zip(
                ids.tolist(),
                owners[self._units["chunk_document"][ids]].tolist(),
                self._units["chunk_tokens"][ids].tolist(),
                strict=True,
            )
            yield [{"chunk": n, "document": document, "tokens": t} for n, document, t in rows]
        for ids, texts, tokens, documents_ in self.unit_batches():
            parts = (ids, self._units["unit_chunk"][ids], documents_, self._units["unit_span"][ids])
            listed = zip(*(part.tolist() for part in parts), tokens, texts, strict=True)
            yield [
                {
                    "unit": n,
                    "chunk": chunk,
                    "document": document,
                    "start": span[0],
                    "end": span[1],
                    "tokens": count,
                    "text": text,
                }
                for n, chunk, document, span, count, text in listed
            ]
