"""The text-keyword graph against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import bipartite as plain
from tests.support.effort import Report, is_stopped

from ketrag_fast.errors import InputError
from ketrag_fast.kernels import graphs

UNITS = st.lists(st.sets(st.integers(0, 14)), max_size=12)


def pack(units: list[set[int]]) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, units)])
    return indptr, np.array([w for unit in units for w in sorted(unit)], dtype=np.int64)


def unpack(rows: graphs.Rows) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.indices, rows.indptr[1:-1].astype(int))]


@given(UNITS, st.integers(0, 4), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([1, 2]))
def test_keywords_and_their_units(units: list[set[int]], least: int, ratio: float, threads: int) -> None:
    graph = graphs.bipartite(*pack(units), 15, min_df=least, max_df_ratio=ratio, threads=threads)
    unit_keywords, keyword_units, kept = plain.bipartite(units, min_df=least, max_df_ratio=ratio)
    assert graph.kept.tolist() == kept
    if units:
        assert unpack(graph.unit_keywords) == unit_keywords
        assert unpack(graphs.renumber(*pack(units), 15, kept)) == unit_keywords
    if kept:
        assert unpack(graph.keyword_units) == keyword_units


@given(UNITS)
def test_turning_twice_changes_nothing(units: list[set[int]]) -> None:
    once = graphs.transpose(*pack(units), 15)
    twice = graphs.transpose(*once, len(units))
    for got, want in zip(twice, pack(units), strict=True):
        np.testing.assert_array_equal(got, want)


def test_bad_rows_are_named() -> None:
    with pytest.raises(InputError, match="row 0"):
        graphs.transpose([0, 2], [1, 0], 2)
    with pytest.raises(InputError, match="not below"):
        graphs.transpose([0, 1], [2], 2)
    with pytest.raises(InputError, match="max_df_ratio"):
        graphs.bipartite([0, 1], [0], 1, max_df_ratio=float("nan"))
    with pytest.raises(InputError, match="ascending"):
        graphs.renumber([0, 1], [0], 2, [1, 0])


def test_a_long_transpose_can_be_stopped() -> None:
    def turn(size: int, report: Report) -> None:
        indptr = np.arange(0, 4 * size + 1, 4, dtype=np.uint64)
        indices = np.tile(np.arange(4, dtype=np.uint32), size)
        graphs.transpose(indptr, indices, 4, threads=1, report=report)

    is_stopped(turn, 4_000_000)
