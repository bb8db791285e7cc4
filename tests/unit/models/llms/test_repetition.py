"""Circles are found, tables and lists are not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast.models.llms.llama.slots import repeats


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300), st.text('abcdefgh ,[]"', min_size=1, max_size=200))
def test_a_passage_said_over_and_over(before: str, passage: str) -> None:
    assert repeats(before + passage * (300 // len(passage) + 4))


def test_what_only_looks_alike() -> None:
    assert not repeats("")
    assert not repeats("-" * 80)
    assert not repeats('["Nansen","person"],' * 3)
    assert not repeats(
        ",".join(f'["Entity {n}","person","The {n}th one of a long list."]' for n in range(99))
    )
