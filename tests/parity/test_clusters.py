"""k-means against its plain version, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import clusters as plain

from ketrag_fast.errors import Cancelled, InputError
from ketrag_fast.kernels import kmeans


@st.composite
def vectors(draw: st.DrawFn) -> np.ndarray:
    n, d = draw(st.integers(0, 25)), draw(st.integers(1, 5))
    cell = st.sampled_from([0.0, 0.0, 1.0, -2.5, 0.3]) | st.floats(-1, 1, width=32)
    cells = draw(st.lists(cell, min_size=n * d, max_size=n * d))
    scale = draw(st.sampled_from([1.0, 1e-25, 1e20, 1e37]))
    return (np.array(cells, np.float32) * np.float32(scale)).reshape(n, d)


@given(vectors(), st.integers(1, 30), st.integers(0, 2**64 - 1), st.integers(0, 6))
def test_kmeans_is_the_plain_one(rows: np.ndarray, k: int, seed: int, iterations: int) -> None:
    got = kmeans(rows, k, seed=seed, iterations=iterations)
    labels, centres = plain.kmeans(rows, k, seed=seed, iterations=iterations)
    assert got.labels.tolist() == labels.tolist()
    assert got.centres.tobytes() == centres.tobytes()


def test_the_same_bits_for_any_threads_and_instructions() -> None:
    random = np.random.default_rng(2)
    heaps = random.normal(size=(20, 48))
    rows = (heaps[random.integers(0, 20, 4000)] + random.normal(size=(4000, 48))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    want = plain.kmeans(rows, 30, seed=3, iterations=5)
    for threads in (1, 2, 7):
        for simd in ("auto", "portable"):
            got = kmeans(rows, 30, seed=3, iterations=5, threads=threads, simd=simd)
            assert got.labels.tolist() == want[0].tolist()
            assert got.centres.tobytes() == want[1].tobytes()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"centres": 0}, "at least one"),
        ({"centres": -1}, "centres"),
        ({"values": [[np.nan]]}, "NaN"),
        ({"values": [1.0]}, "2 dimensions"),
        ({"values": np.zeros((3, 0))}, "dimension"),
        ({"seed": 2**64}, "seed"),
        ({"iterations": 2**32}, "iterations"),
        ({"simd": "sse9"}, "simd"),
    ],
)
def test_what_makes_no_sense_is_named(arguments: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        kmeans(**{"values": [[1.0], [2.0]], "centres": 1, **arguments})


def test_it_can_be_stopped() -> None:
    rows = np.random.default_rng(1).random((60_000, 64), np.float32)
    with pytest.raises(Cancelled):
        kmeans(rows, 500, report=lambda done, total: False)
