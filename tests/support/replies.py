"""Replies as the arrays of the stage `replies`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ketrag_fast.kernels.text import pack


def packed_replies(replies: Sequence[Any]) -> dict[str, Any]:
    """Rows (chunk, entities, relations), ascending; records are (name, type, description) and
    (source, target, description, strength)."""
    entities = [record for reply in replies for record in reply[1]]
    relations = [record for reply in replies for record in reply[2]]
    out: dict[str, Any] = {
        "reply_chunk": np.array([reply[0] for reply in replies], np.uint32),
        "reply_entities_indptr": np.cumsum([0, *(len(reply[1]) for reply in replies)]).astype(np.uint64),
        "reply_relations_indptr": np.cumsum([0, *(len(reply[2]) for reply in replies)]).astype(np.uint64),
        "relation_strength": np.array([record[3] for record in relations], np.float64),
    }
    for name, column in {
        "entity_name": [record[0] for record in entities],
        "entity_type": [record[1] for record in entities],
        "entity_description": [record[2] for record in entities],
        "relation_source": [record[0] for record in relations],
        "relation_target": [record[1] for record in relations],
        "relation_description": [record[2] for record in relations],
    }.items():
        out[f"{name}_blob"], out[f"{name}_offsets"] = pack(column)
    return out
