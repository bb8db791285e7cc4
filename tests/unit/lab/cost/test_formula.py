"""The paper's formula against hand-made numbers, and the reasons for its difference from the truth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.lab.cost.formula import Actual, Shape, difference, ket_index, kg_index


def test_the_papers_numbers() -> None:
    """751,784 tokens in chunks of 1,200, a prompt of 1,500: by hand from specs 10, 1.8."""
    shape = Shape(
        chunks=627, chunk_tokens=1200, core_ratio=0.8, prompt_tokens=1500, description_tokens=100_000
    )
    assert kg_index(shape).tokens_in == (2 + 3000 / 1200) * 1200 * 627
    assert kg_index(shape).embedding_tokens == 1200 * 627 + 100_000
    assert ket_index(shape).tokens_in == pytest.approx(0.8 * kg_index(shape).tokens_in)
    assert ket_index(shape).embedding_tokens == pytest.approx(0.8 * (752_400 + 100_000) + 3 * 752_400)


def test_each_reason_is_zero_where_it_does_not_apply() -> None:
    """Full chunks, one call each, a whole number of them: what is left is the second prompt."""
    shape = Shape(chunks=10, chunk_tokens=100, core_ratio=0.5, prompt_tokens=50)
    parts = difference(shape, Actual(core_chunks=5, core_tokens=500, calls=5, tokens_in=750))
    assert parts == pytest.approx(
        {"two_prompts": 750.0, "full_chunks": 0.0, "rounding": 0.0, "repeats": 0.0, "wording": 0.0}
    )


@given(
    st.integers(1, 500),
    st.integers(8, 2000),
    st.floats(0.0, 1.0),
    st.integers(0, 3000),
    st.integers(0, 3),
    st.integers(0, 10**7),
)
def test_the_reasons_add_up(
    chunks: int, size: int, ratio: float, prompt: int, gleanings: int, tokens_in: int
) -> None:
    shape = Shape(chunks, size, ratio, prompt)
    core = math.ceil(ratio * chunks - 1e-9)
    actual = Actual(core, core * (size // 2), core * (1 + gleanings), tokens_in)
    whole = ket_index(shape).tokens_in - tokens_in
    assert math.fsum(difference(shape, actual).values()) == pytest.approx(whole, abs=1e-3)
