"""Compare the unchanged documents of the tables with a published generation.

A document is verified by the hash of everything stored of it, which needs its text. For a document that has
not changed since its generation was published, the arrays hold what was hashed, and their checksums are
verified. It is then enough to check that the tables still have the same id, title and metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.storage.tables import Tables

_NO_METADATA = b"{}"


def are_as_published(tables: Tables, units: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> bool:
    """Return whether the unchanged documents have the id, title and metadata that were published.

    Texts in the tables are verified by their hashes. Returns False as well if documents have sections or
    locators, for which the arrays are not enough.

    Args:
        tables: the current documents.
        units: the intact arrays of the stage "units" of a generation.
        rows: the row of each current document in `units`; -1 for a new document.

    Raises:
        IndexDamaged: a text in the tables does not match the hash of its document.
    """
    names = units["document_ids_offsets"]
    if len(names) - 1 != int(units["document_count"][0]) or tables.has_locators():
        return False
    numbers = np.flatnonzero(rows >= 0)
    described = list(tables.descriptions())
    if len(described) != len(rows):
        return False
    if len(numbers) < len(rows):
        described = [described[number] for number in numbers.tolist()]
    ids, titles, metadata = (
        [one[0] for one in described],
        [one[1] for one in described],
        [one[2] for one in described],
    )
    stored = [number for number, one in zip(numbers.tolist(), described, strict=True) if one[3]]
    del described
    for _ in tables.some(stored):
        pass
    kept = rows[numbers].astype(np.uint32)
    columns = [("document_ids", ids), ("document_titles", titles)]
    if "document_metadata_offsets" in units:
        columns.append(("document_metadata", metadata))
    elif any(about != _NO_METADATA for about in metadata):
        return False
    return all(_is_column(units, name, kept, values) for name, values in columns)


def _is_column(
    units: Mapping[str, NDArray[Any]], name: str, rows: NDArray[np.uint32], values: Iterable[bytes]
) -> bool:
    """Return whether the given rows of a published string column equal these values."""
    blob, offsets = _core.take_strings((units[f"{name}_blob"], units[f"{name}_offsets"]), rows)
    found = list(values)
    lengths = np.fromiter(map(len, found), np.uint64, len(found))
    return bool((np.diff(offsets) == lengths).all()) and blob.tobytes() == b"".join(found)
