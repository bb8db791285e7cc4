"""Read the citation graph for pictures and exports."""

from __future__ import annotations

import numpy as np

from ketrag_fast.systems.shared.drawing import join_edges
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.row_text import text_of
from ketrag_fast.systems.shared.rows import Arrays, csr, documents_of, strings
from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock


def read_citations(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return documents and their citations."""
    units, citations = stages["units"], stages["citations"]
    owners, rows = documents_of(units)
    ids, titles = (Names(*strings(units, name), case=str) for name in ("document_ids", "document_titles"))

    def title(number: int) -> str:
        row = int(rows[number])
        return text_of(units, "document_titles", row) or text_of(units, "document_ids", row)

    def find(name: str) -> list[int]:
        found = [row for row in (ids.find(name), titles.find(name)) if row is not None]
        return sorted({int(owners[row]) for row in found})

    def near(name: str) -> list[str]:
        return titles.near(name) or ids.near(name)

    return join_edges(
        (NodeBlock("document", len(rows), title, find, near, inspects="document"),),
        [(0, 0, csr(citations, "cites"), 1.0)],
        of_units=lambda found: np.unique(owners[units["unit_document"][found]]).astype(np.int64),
        edge="cites",
    )
