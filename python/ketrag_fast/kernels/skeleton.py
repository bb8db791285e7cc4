"""The skeleton: replies of single chunks folded into one graph of entities and relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import Report, real, whole
from ketrag_fast.kernels.text import Packed, pack

Arrays = Mapping[str, NDArray[Any]]


def fold_skeleton(
    replies: Arrays,
    chunk_units: ArrayLike,
    unit_texts: Sequence[str] | Packed,
    unit_spans: ArrayLike,
    *,
    encoding: str = "cl100k_base",
    rewire: str = "all",
    description_tokens: int = 500,
    threads: int = 0,
    report: Report = None,
) -> dict[str, NDArray[Any]]:
    """Merges what was read out of chunks: a pure function of the replies and of the units' texts.

    `replies` holds one row for each chunk that was read, in ascending id: `reply_chunk` [c],
    `reply_entities_indptr` and `reply_relations_indptr` [c + 1], the packed strings `entity_name`,
    `entity_type`, `entity_description`, `relation_source`, `relation_target`, `relation_description`
    (each `NAME_blob` and `NAME_offsets`) and `relation_strength`. The units of chunk `c` are
    `chunk_units[c]:chunk_units[c + 1]`; `unit_spans` [units, 2] are code points of their documents.

    Names and types are upper-cased; records of one name, and relations of one pair, are merged; ends
    that no record declares become entities; relations to nothing or to themselves are dropped and
    counted in `fold_dropped` [nameless entities, relations to nothing, loops]. A description is the distinct
    lines, those that most chunks say first, up to `description_tokens`. `rewire="mention"` ties an entity
    to the units that name it (all of the chunk where none does), a relation to those that name both ends.

    Returns the arrays of the stage `skeleton`: `entity_*`, `relation_*`, `mention_*` (places of names in
    the text), with the token counts of the printed rows. Source: KET-RAG Alg. 1; graphrag 0.4.1.
    """
    missing = [name for name in _FLAT if name not in replies]
    missing += [name for name in _STRINGS if not {f"{name}_blob", f"{name}_offsets"} <= replies.keys()]
    if missing:
        raise InputError(f"the replies lack {', '.join(missing)}")
    strings = {name: (replies[f"{name}_blob"], replies[f"{name}_offsets"]) for name in _STRINGS}
    spans = np.ascontiguousarray(unit_spans, np.uint32).reshape(-1, 2)
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
        unit_texts if isinstance(unit_texts, tuple) else pack(unit_texts),
        spans,
        encoding,
        rewire=rewire,
        description_tokens=description_tokens,
        threads=threads,
        report=report,
    )


_FLAT = ("reply_chunk", "reply_entities_indptr", "reply_relations_indptr", "relation_strength")
_STRINGS = (
    "entity_name",
    "entity_type",
    "entity_description",
    "relation_source",
    "relation_target",
    "relation_description",
)
