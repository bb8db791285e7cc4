"""The citations between documents as tables of nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ketrag_fast.systems.cg_rag.inspection import SOURCES
from ketrag_fast.systems.shared.graph_columns import I64, constant, owners, texts_at
from ketrag_fast.systems.shared.rows import Arrays, csr, documents_of, strings, unit_owners
from ketrag_fast.systems.spec.graph_tables import Column, GraphTables


def citations(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the documents, and their citations as edges."""
    units, arrays = stages["units"], stages["citations"]
    indptr, indices = csr(arrays, "cites")
    count = len(indptr) - 1
    first_row = documents_of(units)[1].astype(np.int64)
    ends = np.searchsorted(unit_owners(units), np.arange(count + 1))

    def units_of(rows: I64) -> list[list[int]]:
        pairs = zip(ends[rows].tolist(), ends[rows + 1].tolist(), strict=True)
        return [list(range(first, last)) for first, last in pairs]

    def origins(rows: I64) -> list[str]:
        flags = arrays["cite_source"][rows].tolist()
        return [", ".join(name for bit, name in SOURCES.items() if bit & value) for value in flags]

    return GraphTables(
        kinds=("document",),
        kind=constant(count),
        nodes={
            "name": Column("text", lambda rows: texts_at(strings(units, "document_ids"), first_row[rows])),
            "title": Column(
                "text", lambda rows: texts_at(strings(units, "document_titles"), first_row[rows])
            ),
            "units": Column("ids", units_of),
        },
        relations=("cites",),
        relation=constant(len(indices)),
        source=owners(indptr),
        target=indices,
        edges={"origin": Column("text", origins)},
        directed=True,
        unique_names=True,
    )
