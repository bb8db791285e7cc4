"""Arrays against their declarations: what is right passes, and every way to be wrong is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.errors import StageError
from ketrag_fast.systems.spec.arrays import ANY, array, check, codes, each, graph, measure_sizes, strings

KINDS = {
    "u8": np.uint8, "i8": np.int8, "u32": np.uint32, "u64": np.uint64,
    "i64": np.int64, "f32": np.float32, "f64": np.float64, "bool": np.bool_,
}  # fmt: skip


@st.composite
def rows_of_ids(draw: Any) -> dict[str, Any]:
    """A graph as `graph("g", "rows", "columns")` declares it, and a column that says how many there are."""
    columns = draw(st.integers(1, 9))
    rows = draw(st.lists(st.lists(st.integers(0, columns - 1), max_size=4), max_size=6))
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    indices = np.array([x for row in rows for x in row], np.uint32)
    return {"g_indptr": indptr, "g_indices": indices, "c": np.zeros(columns, np.uint8)}


GRAPH = {"c": array("u8", "columns"), **graph("g", "rows", "columns")}


@given(rows_of_ids())
def test_what_is_right_passes_and_tells_its_sizes(arrays: dict[str, Any]) -> None:
    sizes: dict[str, int] = {}
    check(GRAPH, arrays, sizes, "s")
    assert sizes == {"rows": len(arrays["g_indptr"]) - 1, "columns": len(arrays["c"])}
    check(GRAPH, arrays, sizes, "s")  # and again, with the sizes known
    only: dict[str, int] = {}
    measure_sizes(GRAPH, {name: made.shape for name, made in arrays.items()}, only, "s")
    assert only == sizes


@given(rows_of_ids(), st.data())
def test_every_change_that_breaks_it_is_found(arrays: dict[str, Any], data: st.DataObject) -> None:
    sizes: dict[str, int] = {}
    check(GRAPH, arrays, sizes, "s")
    bad = {name: made.copy() for name, made in arrays.items()}
    ways = ["missing", "extra", "type", "shape", "longer"]
    ways += ["too large"] if len(bad["g_indices"]) else []
    ways += ["falling"] if len(bad["g_indptr"]) > 2 else []
    way = data.draw(st.sampled_from(ways))
    name = data.draw(st.sampled_from(sorted(bad)))
    if way == "missing":
        del bad[name]
    elif way == "extra":
        bad["more"] = bad[name]
    elif way == "type":
        bad[name] = bad[name].astype(np.int16)
    elif way == "shape":
        bad[name] = bad[name][None]
    elif way == "longer":
        name = data.draw(st.sampled_from(["g_indptr", "c"]))
        bad[name] = np.append(bad[name], bad[name][-1:])
    elif way == "too large":
        name = "g_indices"
        place = data.draw(st.integers(0, len(bad[name]) - 1))
        bad[name][place] = sizes["columns"] + data.draw(st.integers(0, 100))
    else:
        name = "g_indptr"
        bad[name][1] = bad[name][-1] + np.uint64(1)
    with pytest.raises(StageError) as caught:
        check(GRAPH, bad, dict(sizes), "s")
    assert f"s.{'more' if way == 'extra' else name}" in str(caught.value)


@pytest.mark.parametrize(("kind", "made"), KINDS.items())
def test_each_type_is_only_itself(kind: str, made: type) -> None:
    for other in KINDS.values():
        arrays = {"x": np.zeros(3, other)}
        if other is made:
            check({"x": array(kind, ANY)}, arrays, {}, "s")
        else:
            with pytest.raises(StageError, match=rf"s\.x has type {np.dtype(other)}; {kind} is declared"):
                check({"x": array(kind, ANY)}, arrays, {}, "s")
    big = np.zeros(3, np.dtype(made).newbyteorder(">"))
    check({"x": array(kind, ANY)}, {"x": big}, {}, "s")  # the writer turns the bytes


@given(st.integers(-3, 9), st.integers(1, 6))
def test_ids_are_from_0_to_below_their_size(value: int, size: int) -> None:
    specs = {"n": array("u8", "size"), "x": array("i64", 1, below="size")}
    arrays = {"n": np.zeros(size, np.uint8), "x": np.array([value])}
    if 0 <= value < size:
        check(specs, arrays, {}, "s")
    else:
        with pytest.raises(
            StageError, match=rf"s\.x has the value {value}; it must be 0 or more and below size \({size}\)"
        ):
            check(specs, arrays, {}, "s")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_are_finite(bad: float) -> None:
    for kind in ("f32", "f64"):
        with pytest.raises(StageError, match="not finite"):
            check({"x": array(kind, ANY)}, {"x": np.array([0, bad], KINDS[kind])}, {}, "s")


@given(st.lists(st.text(max_size=5), max_size=6))
def test_texts(texts: list[str]) -> None:
    specs = strings("t", "texts")
    parts = [text.encode("utf-8", "replace") for text in texts]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.uint64)
    blob = np.frombuffer(b"".join(parts), np.uint8)
    sizes: dict[str, int] = {}
    check(specs, {"t_blob": blob, "t_offsets": offsets}, sizes, "s")
    assert sizes == {"texts": len(texts)}
    with pytest.raises(StageError, match=r"s\.t_offsets goes from 0 to .*; t_blob has"):
        check(specs, {"t_blob": np.append(blob, np.uint8(65)), "t_offsets": offsets}, {}, "s")
    with pytest.raises(StageError, match=r"s\.t_offsets has 0 rows or columns; texts\+1 is at least 1"):
        check(specs, {"t_blob": blob, "t_offsets": offsets[:0]}, {}, "s")


def test_optional_arrays_may_be_missing() -> None:
    specs = dict(each(codes("u", "units", optional=True), graph("g", "a", "b", optional=True)))
    check(specs, {}, {}, "s")
    with pytest.raises(StageError, match="u_scale has 3 rows or columns; units is 2"):
        check(specs, {"u_codes": np.zeros((2, 4), np.int8), "u_scale": np.zeros(3, np.float32)}, {}, "s")


def test_declarations_that_make_no_sense() -> None:
    with pytest.raises(StageError, match="unknown array type 'u16'"):
        array("u16", "units")
    for size in ("Units", "units-1", "units + 1", "", "1"):
        with pytest.raises(StageError, match="invalid size"):
            array("u8", size)
    with pytest.raises(StageError, match="bounded by the size nobody"):
        check({"x": array("u8", 1, below="nobody")}, {"x": np.zeros(1, np.uint8)}, {}, "s")
