"""The skeleton: replies of single chunks folded into one graph of entities and relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import U32, U64, Report, real, whole
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


class LocalContext(NamedTuple):
    """The printed tables. `sections` are (name, tokens, start, end) with bytes of `text`.

    `entities`, `relations` and `sources` are the ids of the printed rows, in order.
    """

    text: str
    tokens: int
    sections: list[tuple[str, int, int, int]]
    entities: U32
    relations: U32
    sources: U32
    source_tokens: U64


def local_search(
    skeleton: Arrays,
    unit_texts: Sequence[str] | Packed,
    unit_tokens: ArrayLike,
    selected: ArrayLike,
    token_budget: int,
    *,
    relations_per_entity: int = 10,
    published: bool = False,
    rollover: bool = False,
    fill_policy: str = "first_overflow_stops",
    oversize_policy: str = "truncate",
    encoding: str = "cl100k_base",
) -> LocalContext:
    """The tables of entities, relations and sources for `selected` entities, nearest first.

    `skeleton` holds the arrays that `fold_skeleton` returns; `unit_tokens` [units] the count of each text.
    Half of the budget is for entities and relations, half for sources (`rollover`: and what the first two
    leave). `published` (parity) counts whole rows, lets links stick to a relation, repeats sources, and
    reports the count of the whole text, as graphrag 0.4.1 does; it asks for 20 entities where 10 are
    wanted. Source: KET-RAG Alg. 2.
    """
    if token_budget < 0:
        raise InputError(f"the token budget is negative: {token_budget}")

    def strings(name: str) -> Packed:
        return skeleton[f"{name}_blob"], skeleton[f"{name}_offsets"]

    def rows(name: str) -> tuple[U64, U32]:
        return skeleton[f"{name}_indptr"], skeleton[f"{name}_indices"]

    entities = (
        strings("entity_name"),
        strings("entity_description"),
        whole(skeleton["entity_rank"], np.uint32, "entity_rank"),
        rows("entity_units"),
        whole(skeleton["entity_row_tokens"], np.uint32, "entity_row_tokens"),
    )
    relations = (
        whole(skeleton["relation_source"], np.uint32, "relation_source"),
        whole(skeleton["relation_target"], np.uint32, "relation_target"),
        strings("relation_description"),
        real(skeleton["relation_weight"], "relation_weight"),
        whole(skeleton["relation_rank"], np.uint32, "relation_rank"),
        rows("relation_units"),
        whole(skeleton["relation_row_tokens"], np.uint32, "relation_row_tokens"),
    )
    texts = unit_texts if isinstance(unit_texts, tuple) else pack(unit_texts)
    found = _core.local_search(
        entities,
        relations,
        (texts, whole(unit_tokens, np.uint32, "unit_tokens")),
        whole(selected, np.uint32, "selected"),
        token_budget,
        relations_per_entity=relations_per_entity,
        published=published,
        rollover=rollover,
        skip=fill_policy == "skip_and_continue",
        truncate=oversize_policy == "truncate",
        encoding=encoding,
    )
    return LocalContext(*found)


_FLAT = ("reply_chunk", "reply_entities_indptr", "reply_relations_indptr", "relation_strength")
_STRINGS = (
    "entity_name",
    "entity_type",
    "entity_description",
    "relation_source",
    "relation_target",
    "relation_description",
)
