"""The tables of a skeleton for selected entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import (
    U32,
    U64,
    Packed,
    count,
    flag,
    pack_texts,
    real,
    table,
    text,
    whole,
)
from ketrag_fast.kernels.skeleton import Arrays

_PARTS = ("blob", "offsets")
_ROWS = ("indptr", "indices")


_POLICIES = ("first_overflow_stops", "skip_and_continue")


_OVERSIZE = ("truncate", "drop")


# The arrays of a skeleton that local search reads.
_PRINTED = (
    *(f"{name}_{part}" for name in ("entity_name", "entity_description") for part in _PARTS),
    *(f"relation_description_{part}" for part in _PARTS),
    *(f"{name}_{part}" for name in ("entity_units", "relation_units") for part in _ROWS),
    *("entity_rank", "entity_row_tokens", "relation_source", "relation_target"),
    *("relation_weight", "relation_rank", "relation_row_tokens"),
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
    """Print the tables of entities, relations and sources for `selected` entities, nearest first.

    `skeleton` holds the arrays that `fold_skeleton` returns; `unit_tokens` [units] the count of each text.
    Half of the budget is for entities and relations, half for sources (`rollover`: plus what the first two
    leave). `published` (parity) counts whole rows, orders relations by links, repeats sources, and
    reports the count of the whole text, like graphrag 0.4.1; it selects 20 entities to get 10.
    Source: KET-RAG, Alg. 2.
    """
    table(skeleton, "the arrays of the skeleton", _PRINTED)

    def strings(name: str) -> Packed:
        return _strings(skeleton, name)

    def rows(name: str) -> tuple[U64, U32]:
        ends, ids = skeleton[f"{name}_indptr"], skeleton[f"{name}_indices"]
        return whole(ends, np.uint64, f"{name}_indptr"), whole(ids, np.uint32, f"{name}_indices")

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
    policy, oversize = text(fill_policy, "fill_policy"), text(oversize_policy, "oversize_policy")
    if policy not in _POLICIES or oversize not in _OVERSIZE:
        raise InputError(f"fill_policy must be one of {_POLICIES}, oversize_policy one of {_OVERSIZE}")
    found = _core.local_search(
        entities,
        relations,
        (pack_texts(unit_texts, "unit_texts"), whole(unit_tokens, np.uint32, "unit_tokens")),
        whole(selected, np.uint32, "selected"),
        count(token_budget, "token_budget"),
        relations_per_entity=count(relations_per_entity, "relations_per_entity"),
        published=flag(published, "published"),
        rollover=flag(rollover, "rollover"),
        skip=policy == "skip_and_continue",
        truncate=oversize == "truncate",
        encoding=text(encoding, "encoding"),
    )
    return LocalContext(*found)


def _strings(arrays: Arrays, name: str) -> Packed:
    """Return packed strings of a skeleton."""
    blob, offsets = arrays[f"{name}_blob"], arrays[f"{name}_offsets"]
    return whole(blob, np.uint8, f"{name}_blob"), whole(offsets, np.uint64, f"{name}_offsets")
