"""Rows that fit a budget, against the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import context as plain
from tests.support import all_kernels as kernels

from ketrag_fast.errors import InputError


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 120), st.booleans())
def test_fill(costs: list[int], budget: int, skip: bool) -> None:
    policy = "skip_and_continue" if skip else "first_overflow_stops"
    got = kernels.fill(costs, budget, fill_policy=policy).tolist()
    assert got == plain.fill(costs, budget, skip=skip)


def test_fill_names_bad_input() -> None:
    for arguments, word in [(([1], -1), "negative"), (([-1], 1), "costs"), (([[1]], 1), "costs")]:
        with pytest.raises(InputError, match=word):
            kernels.fill(*arguments)
    with pytest.raises(InputError, match="fill_policy"):
        kernels.fill([1], 1, fill_policy="x")
