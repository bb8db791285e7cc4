"""Local search against its plain twin, and its promises."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import local_search as plain
from tests.oracles import skeleton as fold
from tests.support import all_kernels as kernels
from tests.support.replies import packed_replies

from ketrag_fast.errors import InputError
from ketrag_fast.kernels import count_tokens

NAMES = st.sampled_from([f"name{i}" for i in range(9)])
LINES = st.sampled_from(["", "a line", "another\nline | with a bar", "long " * 9])
ENTITIES = st.lists(st.builds(fold.FoldedEntity, NAMES, st.just(""), LINES), max_size=4)
RELATIONS = st.lists(
    st.builds(fold.FoldedRelation, NAMES, NAMES, LINES, st.sampled_from([1.0, 0.0, 2.5])), max_size=12
)
CHUNKS = st.lists(st.tuples(st.integers(1, 3), ENTITIES, RELATIONS), min_size=1, max_size=6)


@lru_cache(maxsize=10_000)
def count(text: str) -> int:
    return int(count_tokens([text])[0])


def skeleton_of(chunks: list[Any]) -> tuple[dict[str, Any], list[str], list[int], Any]:
    ends = np.cumsum([0, *(n for n, _, _ in chunks)])
    texts = [f"unit {u} " + "text " * (u % 7) for u in range(int(ends[-1]))]
    replies = [fold.ChunkReply(c, e, r) for c, (_, e, r) in enumerate(chunks)]
    arrays = kernels.fold_skeleton(packed_replies(replies), ends, texts, np.zeros((len(texts), 2), np.uint32))
    units = [range(a, b) for a, b in pairwise(ends.tolist())]
    nodes = fold.fold(replies, units, texts, count, lambda text, n: text)
    return arrays, texts, [count(text) for text in texts], nodes


@given(CHUNKS, st.permutations(range(9)), st.integers(0, 400), st.integers(0, 3), st.booleans())
def test_the_tables_are_those_of_the_oracle(
    chunks: list[Any], order: list[int], budget: int, per_entity: int, rollover: bool
) -> None:
    arrays, texts, tokens, (entities, relations, _) = skeleton_of(chunks)
    selected = [e for e in order if e < len(entities)]
    options: dict[str, Any] = {"rollover": rollover}
    got = kernels.local_search(
        arrays,
        texts,
        tokens,
        selected,
        budget,
        relations_per_entity=per_entity,
        oversize_policy="drop",
        **options,
    )
    want = plain.local_search(
        entities, relations, selected, texts, tokens, budget, count, per_entity=per_entity, **options
    )
    assert (got.text, got.tokens) == want[:2]
    assert [got.entities.tolist(), got.relations.tolist(), got.sources.tolist()] == list(want[2:])


@given(CHUNKS, st.permutations(range(9)), st.integers(0, 300), st.booleans(), st.booleans())
def test_no_budget_is_exceeded(
    chunks: list[Any], order: list[int], budget: int, rollover: bool, skip: bool
) -> None:
    arrays, texts, tokens, (entities, _, _) = skeleton_of(chunks)
    selected = [e for e in order if e < len(entities)]
    policy = "skip_and_continue" if skip else "first_overflow_stops"
    got = kernels.local_search(arrays, texts, tokens, selected, budget, rollover=rollover, fill_policy=policy)
    assert got.tokens == sum(tokens for _, tokens, _, _ in got.sections) <= budget
    whole = got.text.encode()
    for name, _, start, end in got.sections:
        part = whole[start:end].decode()
        assert part.startswith(f"-----{name.capitalize()}-----\n")
        assert part.endswith("\n")
    assert len(set(got.sources.tolist())) == len(got.sources)


def test_inside_first_then_by_links_and_rank_up_to_the_cap() -> None:
    """Acceptance 11: in-network before out-network; out-network by (links, rank); at most 10 for each."""
    joins = [("A", "B")] + [("A", f"X{i}") for i in range(30)] + [("B", "X29"), ("X3", "Y")]
    relations = [fold.FoldedRelation(a, b, "", 1.0) for a, b in joins]
    arrays, texts, tokens, _ = skeleton_of([(1, [], relations)])
    got = kernels.local_search(arrays, texts, tokens, [0, 1], 100_000)
    shared = [joins.index(("A", "X29")), joins.index(("B", "X29"))]
    assert got.relations.tolist()[:4] == [0, *shared, joins.index(("A", "X3"))]
    assert len(got.relations) == 1 + 20


def test_entities_that_are_none() -> None:
    arrays, texts, tokens, _ = skeleton_of([(1, [fold.FoldedEntity("A", "", "")], [])])
    with pytest.raises(InputError, match="entity 7 does not exist"):
        kernels.local_search(arrays, texts, tokens, [7], 100)
    with pytest.raises(InputError, match="negative"):
        kernels.local_search(arrays, texts, tokens, [0], -1)
    assert kernels.local_search(arrays, texts, tokens, [], 100).text == ""
    cut = kernels.local_search(arrays, texts, tokens, [0], 36)
    assert cut.tokens <= 36
