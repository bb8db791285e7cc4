"""The fold of replies against its plain twin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import skeleton as plain
from tests.support.effort import Report, is_stopped
from tests.support.replies import packed_replies

from ketrag_fast.errors import InputError
from ketrag_fast.kernels import count_tokens
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.papers import kernels

NAMES = st.sampled_from(
    ["Nansen", " nansen", "FRAM", "Fram\n", "Oslo", "straße", "STRASSE", "東京", "", " \t", "a b", "1893"]
)
LINES = st.sampled_from(
    ["explorer", "a ship", "x\ny", "\n", "", "explorer\r\nexplorer", "é" * 9, "long " * 20]
)
ENTITIES = st.builds(plain.FoldedEntity, NAMES, st.sampled_from(["", "person", "GEO"]), LINES)
STRENGTHS = st.sampled_from([1.0, 2.5, 0.0, -3.0, float("nan"), float("inf")])
RELATIONS = st.builds(plain.FoldedRelation, NAMES, NAMES, LINES, STRENGTHS)
TEXTS = st.lists(
    st.sampled_from(["Nansen", "nansens", "the Fram", "東京都", "Straße", "OSLO,", "1893.", "a b", "é"]),
    max_size=6,
).map(" ".join)


def count(text: str) -> int:
    return int(count_tokens([text])[0])


def cut(text: str, tokens: int) -> str:
    """A long prefix of at most so many tokens, found by halving as the core does."""
    low, high = 0, len(text) + 1
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= tokens else (low, middle)
    return text[:low]


def strings(arrays: dict[str, Any], name: str) -> list[str]:
    return unpack(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])


def rows(arrays: dict[str, Any], name: str) -> list[list[int]]:
    ends = arrays[f"{name}_indptr"][1:-1].astype(int)
    return [part.tolist() for part in np.split(arrays[f"{name}_indices"], ends)]


@given(
    st.lists(
        st.tuples(
            st.lists(TEXTS, max_size=3), st.lists(ENTITIES, max_size=4), st.lists(RELATIONS, max_size=4)
        )
    ),
    st.sets(st.integers(0, 9)),
    st.sampled_from([0, 1, 4, 12, 500]),
    st.sampled_from([1, 3]),
)
def test_the_fold_is_that_of_the_oracle(
    chunks: list[Any], unread: set[int], limit: int, threads: int
) -> None:
    texts = [text for units, _, _ in chunks for text in units]
    ends = np.cumsum([0, *(len(units) for units, _, _ in chunks)])
    spans = np.stack([np.arange(len(texts)) * 7, np.arange(len(texts)) * 7 + 5], 1)
    replies = [plain.ChunkReply(c, e, r) for c, (_, e, r) in enumerate(chunks) if c not in unread]
    got = kernels.fold_skeleton(
        packed_replies(replies),
        ends,
        texts,
        spans,
        description_tokens=limit,
        threads=threads,
    )
    units = [range(a, b) for a, b in pairwise(ends)]
    names, pairs, dropped = plain.fold(replies, units, count, cut, description_tokens=limit)
    assert strings(got, "entity_name") == [n.name for n in names]
    assert strings(got, "entity_type") == [n.type for n in names]
    assert strings(got, "entity_description") == [n.description for n in names]
    assert got["entity_rank"].tolist() == [n.rank for n in names]
    assert list(zip(got["relation_source"], got["relation_target"], strict=True)) == [p.ends for p in pairs]
    assert strings(got, "relation_description") == [p.description for p in pairs]
    assert got["relation_weight"].tolist() == [p.weight for p in pairs]
    assert got["relation_rank"].tolist() == [p.rank for p in pairs]
    assert got["fold_dropped"].tolist() == dropped
    if names:
        assert rows(got, "entity_chunks") == [n.chunks for n in names]
        assert rows(got, "entity_units") == [n.units for n in names]
    if pairs:
        assert rows(got, "relation_chunks") == [p.chunks for p in pairs]
        assert rows(got, "relation_units") == [p.units for p in pairs]
    of = {i: n.name for i, n in enumerate(names)}
    entity_rows = [plain.entity_row(i, n) for i, n in enumerate(names)]
    relation_rows = [plain.relation_head(i, p, of) for i, p in enumerate(pairs)]
    assert got["entity_row_tokens"].tolist() == [count(row) for row in entity_rows]
    assert got["relation_row_tokens"].tolist() == [count(row) for row in relation_rows]
    places = [
        (e, u, 7 * u + a, 7 * u + b)
        for e, n in enumerate(names)
        for c in n.chunks
        for u in units[c]
        for a, b in plain.occurrences(texts[u], n.name)
    ]
    columns = ("mention_entity", "mention_unit", "mention_start", "mention_end")
    assert list(zip(*(got[name].tolist() for name in columns), strict=True)) == places


def test_bad_replies_are_named() -> None:
    good = packed_replies([plain.ChunkReply(0, [plain.FoldedEntity("A", "", "")], [])])
    with pytest.raises(InputError, match="not below 0"):
        kernels.fold_skeleton(good, [0], [], [])
    with pytest.raises(InputError, match="relation_strength"):
        kernels.fold_skeleton({k: v for k, v in good.items() if k != "relation_strength"}, [0], [], [])
    with pytest.raises(InputError, match="entities: offsets"):
        kernels.fold_skeleton({**good, "reply_entities_indptr": np.array([0, 2])}, [0, 0], [], [])
    with pytest.raises(InputError, match="types"):
        blob, offsets = pack(["a", "b"])
        broken = {**good, "entity_type_blob": blob, "entity_type_offsets": offsets}
        kernels.fold_skeleton(broken, [0, 0], [], [])


def test_a_long_fold_can_be_stopped() -> None:
    def fold(size: int, report: Report) -> None:
        relations = [
            plain.FoldedRelation(f"S{i % 5000}", f"T{i % 4999}", f"line {i}", 1.0) for i in range(size)
        ]
        replies = packed_replies([plain.ChunkReply(i, [], relations[i::3]) for i in range(3)])
        kernels.fold_skeleton(replies, [0, 0, 0, 0], [], [], threads=1, report=report)

    is_stopped(fold, 300_000)
