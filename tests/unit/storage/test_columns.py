"""Ranges of a text that overlap another range, found among stored ones without NumPy."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import _core
from ketrag_fast.errors import InputError


def test_overlapping_spans_are_those_of_a_comparison_with_all(tmp_path: Path) -> None:
    rng = random.Random(1)
    spans = sorted((at := rng.randint(0, 500), at + rng.randint(0, 60)) for _ in range(400))
    np.save(tmp_path / "spans.npy", np.array(spans, np.uint32))
    column = _core.Column(str(tmp_path / "spans.npy"))
    for _ in range(200):
        first = rng.randint(0, 400)
        last = rng.randint(first, 400)
        start = rng.randint(0, 550)
        end = start + rng.randint(1, 30)
        wanted = [at for at in range(first, last) if spans[at][0] < end and spans[at][1] >= start]
        assert column.overlapping(first, last, start, end) == wanted
    with pytest.raises(InputError, match="no spans 3 to 401"):
        column.overlapping(3, 401, 0, 9)
