"""Transposed and renumbered rows against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import transpose as plain
from tests.support import all_kernels as kernels
from tests.support.effort import Report, is_stopped

from ketrag_fast.errors import InputError

UNITS = st.lists(st.sets(st.integers(0, 14)), max_size=12)


def pack(units: list[set[int]]) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, units)])
    return indptr, np.array([w for unit in units for w in sorted(unit)], dtype=np.int64)


def unpack(rows: kernels.Rows) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.indices, rows.indptr[1:-1].astype(int))]


@given(UNITS)
def test_columns_become_rows(units: list[set[int]]) -> None:
    assert unpack(kernels.transpose(*pack(units), 15)) == plain.transpose(units, 15)


@given(UNITS.filter(bool), st.sets(st.integers(0, 14)).map(sorted))
def test_kept_columns_are_renumbered(units: list[set[int]], kept: list[int]) -> None:
    assert unpack(kernels.renumber(*pack(units), 15, kept)) == plain.renumber(units, kept)


def test_bad_rows_are_named() -> None:
    with pytest.raises(InputError, match="row 0"):
        kernels.transpose([0, 2], [1, 0], 2)
    with pytest.raises(InputError, match="not below"):
        kernels.transpose([0, 1], [2], 2)
    with pytest.raises(InputError, match="ascending"):
        kernels.renumber([0, 1], [0], 2, [1, 0])


def test_a_long_transpose_can_be_stopped() -> None:
    def turn(size: int, report: Report) -> None:
        indptr = np.arange(0, 4 * size + 1, 4, dtype=np.uint64)
        indices = np.tile(np.arange(4, dtype=np.uint32), size)
        kernels.transpose(indptr, indices, 4, report=report)

    is_stopped(turn, 4_000_000)
