"""The skeleton: a graph of entities and relations, merged from an LLM's replies about single chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import (
    Packed,
    Report,
    callback,
    count,
    pack_texts,
    real,
    table,
    text,
    whole,
)

Arrays = Mapping[str, NDArray[Any]]


def fold_skeleton(
    replies: Arrays,
    chunk_units: ArrayLike,
    unit_texts: Sequence[str] | Packed,
    unit_spans: ArrayLike,
    *,
    encoding: str = "cl100k_base",
    description_tokens: int = 500,
    threads: int = 0,
    report: Report = None,
) -> dict[str, NDArray[Any]]:
    """Merge the entities and relations extracted from chunks into one graph.

    Args:
        replies: one row for each chunk that was read, in ascending id: `reply_chunk` [c],
            `reply_entities_indptr` and `reply_relations_indptr` [c + 1], the packed strings `entity_name`,
            `entity_type`, `entity_description`, `relation_source`, `relation_target`,
            `relation_description` (each `NAME_blob` and `NAME_offsets`) and `relation_strength`.
        chunk_units: the units of chunk `c` are `chunk_units[c]:chunk_units[c + 1]`.
        unit_spans: [units, 2], code points of their documents.
        description_tokens: limit of a description, which lists its distinct lines, most frequent first.

    Returns:
        `entity_*`, `relation_*` and `mention_*` (spans of names in the text), with the token counts of the
        printed rows. Names and types are upper-cased; records of one name, and relations of one pair, are
        merged; undeclared ends of relations become entities. `fold_dropped` counts dropped [entities without
        a name, relations without an end, loops]. Source: KET-RAG, Alg. 1; graphrag 0.4.1.

    Examples:
        >>> import numpy as np
        >>> from ketrag_fast.kernels import pack, unpack
        >>> columns = {"entity_name": "Nansen", "entity_type": "person", "entity_description": "explorer",
        ...     "relation_source": "Nansen", "relation_target": "Fram", "relation_description": "built"}
        >>> replies = {"reply_chunk": [0], "reply_entities_indptr": [0, 1],
        ...     "reply_relations_indptr": [0, 1], "relation_strength": [2.0]}
        >>> for name, value in columns.items():
        ...     replies[f"{name}_blob"], replies[f"{name}_offsets"] = pack([value])
        >>> graph = fold_skeleton(replies, [0, 1], ["Nansen built the Fram."], [[0, 22]])
        >>> unpack(graph["entity_name_blob"], graph["entity_name_offsets"])
        ['NANSEN', 'FRAM']
    """
    table(replies, "the replies", [*_FLAT, *(f"{name}_{part}" for name in _STRINGS for part in _PARTS)])
    strings = {name: _strings(replies, name) for name in _STRINGS}
    spans = whole(unit_spans, np.uint32, "unit_spans", None)
    if spans.size % 2 or (spans.ndim != 1 and spans.shape[1:] != (2,)):
        raise InputError(f"unit_spans must be pairs, not of shape {spans.shape}")
    return _core.fold_skeleton(
        whole(replies["reply_chunk"], np.uint32, "reply_chunk"),
        whole(replies["reply_entities_indptr"], np.uint64, "reply_entities_indptr"),
        strings["entity_name"],
        strings["entity_type"],
        strings["entity_description"],
        whole(replies["reply_relations_indptr"], np.uint64, "reply_relations_indptr"),
        strings["relation_source"],
        strings["relation_target"],
        strings["relation_description"],
        real(replies["relation_strength"], "relation_strength"),
        whole(chunk_units, np.uint64, "chunk_units"),
        pack_texts(unit_texts, "unit_texts"),
        spans.reshape(-1, 2),
        text(encoding, "encoding"),
        description_tokens=count(description_tokens, "description_tokens"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def _strings(arrays: Arrays, name: str) -> Packed:
    blob, offsets = arrays[f"{name}_blob"], arrays[f"{name}_offsets"]
    return whole(blob, np.uint8, f"{name}_blob"), whole(offsets, np.uint64, f"{name}_offsets")


_FLAT = ("reply_chunk", "reply_entities_indptr", "reply_relations_indptr", "relation_strength")
_STRINGS = (
    "entity_name",
    "entity_type",
    "entity_description",
    "relation_source",
    "relation_target",
    "relation_description",
)
_PARTS = ("blob", "offsets")
