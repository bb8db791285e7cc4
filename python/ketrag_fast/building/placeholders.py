"""The documents of a published generation that have placeholders in place of vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from ketrag_fast.storage.checksum import HASH_BYTES
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import SHORT_HASH
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.shared.rows import unit_owners
from ketrag_fast.systems.shared.vectors import passages_without_vectors

PORTION: Final = 64
"""Passages whose vectors are computed before they are published and others may change the index.

MiniLM on one core takes 2 s for them. Each portion rewrites a delta, which takes 0.1 s.
"""


class Unembedded:
    """The passages with placeholders, except those of the documents in the rows `gone`."""

    def __init__(self, base: Generation, gone: Iterable[int]) -> None:
        units = base.stages["units"]
        found = passages_without_vectors(units, base.stages["vectors"], base.stages["sentence_vectors"])
        owners = unit_owners(units)[found]
        owners = owners[~np.isin(owners, list(gone))]
        self._hashes = units["document_hashes"]
        self._rows, self._sizes = np.unique(owners, return_counts=True)
        self.count = len(owners)
        """The number of these passages."""

    def take(self, tables: Tables, most: int | None = PORTION) -> dict[str, int]:
        """Return the ids of some of their documents, as the tables have them now, with their published rows.

        The last of them may have more than the `most` passages that are left for it; None takes all
        documents. `count` becomes the number of the other passages.
        """
        if not len(self._rows):
            return {}
        ends = np.cumsum(self._sizes)
        chosen = len(ends) if most is None else min(int(np.searchsorted(ends, most)) + 1, len(ends))
        self.count = int(ends[-1] - ends[chosen - 1])
        now = tables.content_bytes()
        places = {
            now[start : start + SHORT_HASH]: start // HASH_BYTES for start in range(0, len(now), HASH_BYTES)
        }
        rows = self._rows[:chosen].tolist()
        names = tables.ids_at([places[self._hashes[row].tobytes()] for row in rows])
        return dict(zip(names, rows, strict=True))
