from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast.errors import InputError
from ketrag_fast.eval.compare import compare_paired, randomisation, sign_test


def plain_sign(better: int, worse: int) -> float:
    n = better + worse
    outcomes = [sum(signs) for signs in itertools.product([-1, 1], repeat=n)]
    return sum(abs(outcome) >= abs(better - worse) for outcome in outcomes) / len(outcomes)


@given(st.integers(0, 7), st.integers(0, 7))
def test_the_sign_test_counts_the_outcomes_at_least_as_uneven(better: int, worse: int) -> None:
    assert sign_test(better, worse) == pytest.approx(plain_sign(better, worse))


def test_the_sign_test_of_many_questions() -> None:
    assert sign_test(0, 3000) == 2 / 2**3000 == 0.0
    assert 0.04 < sign_test(1000, 1092) < 0.06
    assert sign_test(0, 0) == 1.0


@settings(max_examples=20)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=9))
def test_randomisation_comes_near_the_whole_count(gaps: list[float]) -> None:
    changed = [gap for gap in gaps if gap]
    sums = [
        abs(math.fsum(s * g for s, g in zip(signs, changed, strict=True)))
        for signs in itertools.product([-1, 1], repeat=len(changed))
    ]
    exact = sum(x >= abs(sum(changed)) - 1e-9 for x in sums) / len(sums)
    assert randomisation(np.array(gaps)) == pytest.approx(exact, abs=0.03)
    assert randomisation(np.array(gaps)) == randomisation(np.array(gaps))


def test_binary_values_get_the_exact_test() -> None:
    found = compare_paired([1.0, 0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0])
    assert found is not None
    assert (found.test, found.better, found.worse, found.n) == ("exact sign", 3, 1, 5)
    assert (found.a, found.b) == (0.4, 0.8)
    assert found.difference == pytest.approx(0.4)
    assert found.p == pytest.approx(0.625)
    assert found.ci95[0] <= found.difference <= found.ci95[1]


def test_other_values_get_the_randomisation_test() -> None:
    rng = np.random.default_rng(1)
    a = rng.random(60)
    found = compare_paired(a.tolist(), (a + rng.normal(0.2, 0.1, 60)).tolist())
    assert found is not None
    assert found.test == "randomisation"
    assert found.p < 0.001
    assert found.ci95[0] > 0.1
    noise = compare_paired(a.tolist(), (a + rng.normal(0.0, 0.3, 60)).tolist())
    assert noise is not None
    assert noise.p > 0.05


def test_equal_sides_and_no_questions() -> None:
    found = compare_paired([0.5, 0.25], [0.5, 0.25])
    assert found is not None
    assert (found.p, found.better, found.worse, found.ci95) == (1.0, 0, 0, (0.0, 0.0))
    assert compare_paired([], []) is None
    with pytest.raises(InputError, match="same length"):
        compare_paired([1.0], [])
