"""The links of the walk as graph tables: units, the names in them, and their subjects."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ketrag_fast.systems.shared.graph_columns import (
    I64,
    blocks_column,
    lists_at,
    owners,
    shortened,
    texts_at,
)
from ketrag_fast.systems.shared.rows import Arrays, csr, strings
from ketrag_fast.systems.spec.graph_tables import GraphTables

KINDS, RELATIONS = ("passage", "name", "subject"), ("names", "about", "mentions")


def links(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return units, names and subjects, without keywords, which would link almost every pair of units."""
    units, arrays = stages["units"], stages["links"]
    counts = [
        len(units["unit_tokens"]),
        len(arrays["names_offsets"]) - 1,
        len(arrays["subjects_offsets"]) - 1,
    ]
    names, subjects = np.cumsum(counts[:2]).tolist()
    about = arrays["unit_subject"]
    is_about = np.flatnonzero(about < counts[2])
    ends = [
        (owners(arrays["unit_names_indptr"]), arrays["unit_names_indices"] + np.uint32(names)),
        (is_about.astype(np.uint32), about[is_about] + np.uint32(subjects)),
        (owners(arrays["unit_mentions_indptr"]), arrays["unit_mentions_indices"] + np.uint32(subjects)),
    ]

    def texts(rows: I64) -> list[str]:
        return texts_at(strings(units, "unit_texts"), rows)

    return GraphTables(
        kinds=KINDS,
        kind=np.repeat(np.arange(3, dtype=np.uint8), counts),
        nodes={
            "name": blocks_column(
                "text",
                "",
                [
                    (counts[0], shortened(texts)),
                    (counts[1], lambda rows: texts_at(strings(arrays, "names"), rows)),
                    (counts[2], lambda rows: texts_at(strings(arrays, "subjects"), rows)),
                ],
            ),
            "description": blocks_column("text", "", [(counts[0], texts), (counts[1] + counts[2], None)]),
            "units": blocks_column(
                "ids",
                [],
                [
                    (counts[0], lambda rows: [[row] for row in rows.tolist()]),
                    (counts[1], lambda rows: lists_at(csr(arrays, "name_units"), rows)),
                    (counts[2], lambda rows: lists_at(csr(arrays, "subject_units"), rows)),
                ],
            ),
        },
        relations=RELATIONS,
        relation=np.repeat(np.arange(3, dtype=np.uint8), [len(first) for first, _ in ends]),
        source=np.concatenate([first for first, _ in ends]),
        target=np.concatenate([last for _, last in ends]),
        edges={},
        directed=True,
    )
