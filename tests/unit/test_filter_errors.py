"""Filters to the letter: what a text is parsed into, the message of each mistake, and the limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from ketrag_fast.base.filters import (
    ColumnReader,
    Columns,
    allow_condition,
    condition_of,
    filter_condition,
    parse_filter,
)
from ketrag_fast.base.filters.allow import MOST_ATOMS, holds_always, shown
from ketrag_fast.base.filters.columns import folded
from ketrag_fast.base.filters.condition import DEEPEST, LONGEST, MOST, FieldComparison, Joined
from ketrag_fast.errors import InputError

OPERATORS = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $contains, $exists"
MISTAKES: list[tuple[Any, str]] = [
    ("", "it is empty"),
    ("x" * (LONGEST + 1), f"it has {LONGEST + 1:,} characters, more than {LONGEST:,}"),
    ("a=1 b", "expected and, or, or the end, found b at character 5"),
    ("a=1 and", "expected the name of a field, found the end at character 7"),
    ("a", "expected =, !=, <, <=, >, >=, ~, in or exists, found the end at character 1"),
    ("a b", "expected =, !=, <, <=, >, >=, ~, in or exists, found b at character 3"),
    ("a in 1", "expected an opening bracket, found 1 at character 6"),
    ("a in (1", "expected a comma or a closing bracket, found the end at character 7"),
    ("(a=1", "expected a closing bracket, found the end at character 4"),
    ("a= ", "expected a value, found the end at character 3"),
    ("AND=1", "expected the name of a field, found AND at character 3"),
    ("a (1", "expected =, !=, <, <=, >, >=, ~, in or exists, found ( at character 3"),
    ("(~a=1)", "expected the name of a field, found ~ at character 2"),
    ("a=1 and ,", "expected the name of a field, found , at character 9"),
    ("  a=!x" + "y" * 60, "cannot be read at character 5: !x" + "y" * 38),
    ("{", "it starts with a brace but is not valid JSON: Expecting property name"),
    (' {"a": ', "it starts with a brace but is not valid JSON: Expecting value"),
    ('{"a": ' + "[" * 100_000, f"it is nested more than {DEEPEST} deep"),
    ([], "expected a mapping, got a list"),
    ({1: 2}, "the name of a field must be a text, got 1"),
    ({"$and": []}, "$and must be a non-empty list of conditions"),
    ({"$or": 3}, "$or must be a non-empty list of conditions"),
    ({"$x": 1}, f"unknown operator $x; expected $and, $or, $not, {OPERATORS}"),
    ({"a": {}}, "'a' has no condition"),
    ({"a": {"$x": 1}}, f"unknown operator $x of a field; expected one of {OPERATORS}"),
    ({"a": {"$in": 3}}, "$in of 'a' must be a list"),
    ({"a": {"$exists": 3}}, "$exists of 'a' must be true or false"),
    ({"a": {"$contains": " "}}, "~ of 'a' needs a text that is not empty"),
    ({"a": {"$contains": 1}}, "~ of 'a' needs a text that is not empty"),
    ({"a": 10**400}, "a number of 'a' is too large"),
    ({"a": float("inf")}, "inf of 'a' is not a text, a finite number, true or false"),
    ({"a": [None]}, "None of 'a' is not a text, a finite number, true or false"),
]


@pytest.mark.parametrize(("given", "message"), MISTAKES, ids=map(str, range(len(MISTAKES))))
def test_each_mistake_has_a_message_and_a_hint(given: Any, message: str) -> None:
    for what, read in (("filter", filter_condition), ("allow", allow_condition)):
        with pytest.raises(InputError) as caught:
            read(given)
        found = caught.value.message
        if "not valid JSON" in message:  # Python says where
            found = found[: len(f"{what}: {message}")]
        assert found == f"{what}: {message}"
        assert caught.value.hint is not None and "year>=1990 and lang=en" in caught.value.hint


def one(name: str, *values: Any) -> FieldComparison:
    return FieldComparison("a", name, values)


def joined(name: str, *parts: Any) -> Joined:
    return Joined(name, parts)


A1, A2, A3 = (one("$eq", float(n)) for n in (1, 2, 3))


TREES: list[tuple[str, Any]] = [
    ("a=1", one("$eq", 1.0)),
    ("a==-1.5e2", one("$eq", -150.0)),
    ("a!=x", one("$ne", "x")),
    ("a<.5", one("$lt", 0.5)),
    ("a<=+3", one("$lte", 3.0)),
    ("a>TRUE", one("$gt", True)),
    ("a>=False", one("$gte", False)),
    ("a ~ 'in ice'", one("$contains", "in ice")),
    ("a EXISTS", one("$exists", True)),
    ("a IN (~x, ~y, true,'it\\'s' , 2)", one("$in", "~x", "~y", True, "it's", 2.0)),
    ("'a'=and", one("$eq", "and")),
    ('"a"="tr~ue"', one("$eq", "tr~ue")),
    ("a=x~y", one("$eq", "x~y")),
    ("a=9007199254740993", one("$eq", 9007199254740993)),
    ("a=1" + "0" * 310, one("$eq", "1" + "0" * 310)),
    ("  a = 1\t", one("$eq", 1.0)),
    ('{"a": 1}', one("$eq", 1.0)),
    ('  {"a": [1]}', one("$in", 1.0)),
    ("not a=1", Joined("$not", (one("$eq", 1.0),))),
    ("a=1 or a=2 AND a=3", joined("$or", A1, joined("$and", A2, A3))),
    ("(a=1 Or a=2) and a=3", joined("$and", joined("$or", A1, A2), A3)),
]


@pytest.mark.parametrize(("text", "wanted"), TREES, ids=map(str, range(len(TREES))))
def test_a_text_is_parsed_into_a_tree(text: str, wanted: Any) -> None:
    if text.startswith("a=1000"):
        with pytest.raises(InputError, match="finite number"):
            parse_filter(text)
        return
    found = parse_filter(text)
    assert found == wanted
    assert repr(found) == repr(wanted), "True is not 1.0"


def test_the_limits_are_reached_and_not_passed() -> None:
    assert parse_filter("a=" + "x" * (LONGEST - 2)) == one("$eq", "x" * (LONGEST - 2))
    for left, right, word in (("(", ")", ""), ("", "", "not ")):
        parse_filter(left * DEEPEST + word * DEEPEST + "a=1" + right * DEEPEST)
        with pytest.raises(InputError, match="nested more than 60 deep"):
            parse_filter(left * (DEEPEST + 1) + word * (DEEPEST + 1) + "a=1" + right * (DEEPEST + 1))
    for name in ("$not", "$and", "$or"):
        deep: Any = {"a": 1}
        for _ in range(DEEPEST):
            deep = {name: deep if name == "$not" else [deep]}
        condition_of(deep)
        with pytest.raises(InputError, match="nested more than 60 deep"):
            condition_of({name: deep if name == "$not" else [deep]})


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda n: {"a": list(range(n))}, lambda n: n + 1),
        (lambda n: {"$or": [{"a": 1}] * n}, lambda n: 2 * n + 1),
        (lambda n: {"$and": [{"a": 1, "b": 1}] * n}, lambda n: 5 * n + 1),
        (lambda n: {"$or": [{}] * n}, lambda n: n + 1),
        (lambda n: {"$or": [{"$not": {"a": 1}}] * n}, lambda n: 3 * n + 1),
        (lambda n: " or ".join(["a=1"] * n), lambda n: 2 * n + 1),
        (lambda n: " or ".join(["not a=1"] * n), lambda n: 3 * n + 1),
        (lambda n: " or ".join(["a exists and a exists"] * n), lambda n: 5 * n + 1),
        (lambda n: f"a in ({','.join('1' * n)})", lambda n: n + 1),
    ],
)
def test_the_size_of_a_filter_is_counted(make: Any, size: Any) -> None:
    most = max(n for n in range(MOST + 1) if size(n) <= MOST)
    filter_condition(make(most))
    with pytest.raises(InputError, match="more than 10,000 conditions and values"):
        filter_condition(make(most + 1))


def fits(rows: list[Any], condition: Any) -> list[bool]:
    found: list[bool] = Columns(rows).fitting(filter_condition(condition)).tolist()
    return found


BIG = 2**53 + 1
"""No float equals it."""


def test_numbers_that_floats_cannot_represent() -> None:
    rows = [{"a": BIG}, {"a": BIG - 1}, {"a": 1}, {"a": "1"}, {}]
    assert fits(rows, {"a": BIG}) == [True, False, False, False, False]
    assert fits(rows, {"a": {"$nin": [BIG, 1]}}) == [False, True, False, True, True]
    assert fits(rows, {"a": {"$gte": BIG}}) == [True, False, False, False, False]
    assert fits([{"a": 10**400}, {"a": 1}], {"a": {"$gt": 1}}) == [True, False]
    # The column has floats alone, the value is such a number.
    assert fits(rows[1:], {"a": {"$lt": BIG}}) == [True, True, False, False]
    assert fits(rows[1:], {"a": {"$gte": BIG}}) == [False, False, False, False]
    assert fits(rows[1:], {"a": [BIG]}) == [False, False, False, False]
    assert fits(rows[1:], {"a": [BIG, 1]}) == [False, True, False, False]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 10, 30])
def test_lists_of_any_length(count: int) -> None:
    rows = [{"a": n} for n in range(40)] + [{"a": True}, {"a": "3"}, {"a": 0.5}]
    wanted = [n < count for n in range(40)] + [False, False, False]
    assert fits(rows, {"a": list(range(count))}) == wanted
    assert fits(rows, {"a": {"$nin": list(range(count))}}) == [not one for one in wanted]
    assert fits(rows, {"a": [*range(count), "3", True]}) == [*wanted[:40], True, True, False]


@pytest.mark.parametrize("name", ["$gt", "$gte", "$lt", "$lte"])
def test_texts_are_ordered_by_code_points(name: str) -> None:
    texts = ["b", "a", "Z", "b", "ä", "", "c"]
    rows: list[Any] = [*({"a": text} for text in texts), {"a": 1}, {}, {"a": ["A", "x"]}]
    compare: Any = {"$gt": str.__gt__, "$gte": str.__ge__, "$lt": str.__lt__, "$lte": str.__le__}[name]
    for value in ("b", "a", "", "z", "Ω", "bb"):
        own = [compare(text, value) for text in texts]
        wanted = [*own, False, False, compare("A", value) or compare("x", value)]
        assert fits(rows, {"a": {name: value}}) == wanted, value


def test_texts_contain_words_in_any_case_and_without_accents() -> None:
    rows = [
        {"a": one} for one in ("Über  das Eis", "Neueis", "eis_x", "Œuvre łódź", "ĲSSEL", 3, ["Eis", "x"])
    ]
    for value, wanted in {
        "eis": [0, 2, 6],
        "UBER das": [0],
        "das\t eis": [0],
        "s": [],
        "oeuvre": [3],
        "LODZ": [3],
        "ijs": [4],
        "3": [],
    }.items():
        found = np.flatnonzero(fits(rows, {"a": {"$contains": value}})).tolist()
        assert found == wanted, value
    assert fits([{"a": "b"}, {"a": "a"}], {"a": {"$contains": "b"}}) == [True, False]
    assert folded("ÆŒ ŁØĐĦŦ ı é ß") == "aeoe lodht i e ss"


def test_a_field_with_several_kinds_of_values() -> None:
    rows = [{"a": 1}, {"a": True}, {"a": "1"}, {"a": [1, "x", True]}, {"a": []}, {"b": {"c": 2}}]
    assert fits(rows, {"a": 1}) == [True, False, False, True, False, False]
    assert fits(rows, {"a": True}) == [False, True, False, True, False, False]
    assert fits(rows, {"a": ["1", "x"]}) == [False, False, True, True, False, False]
    assert fits(rows, {"a": {"$exists": True}}) == [True, True, True, True, False, False]
    assert fits(rows, {"a": {"$exists": False}}) == [False, False, False, False, True, True]
    assert fits(rows, {"b.c": {"$gt": 1}}) == [False] * 5 + [True]
    assert fits(rows, {"a": {"$gt": 0}}) == [True, False, False, True, False, False]


def test_conditions_are_joined() -> None:
    """On documents with each combination of three outcomes."""
    every = list(product((False, True), repeat=3))
    rows = [{"a": a, "b": b, "c": c} for a, b, c in every]
    for text, join in (
        ("a=true and b=true and c=true", lambda a, b, c: a and b and c),
        ("a=true or b=true or c=true", lambda a, b, c: a or b or c),
        ("not a=true", lambda a, b, c: not a),
        ("a=true and (b=true or not c=true)", lambda a, b, c: a and (b or not c)),
        ("a=true and b=true or c=true", lambda a, b, c: (a and b) or c),
        ("not (a=true or b=true and c=true)", lambda a, b, c: not (a or (b and c))),
    ):
        assert fits(rows, text) == [join(*one) for one in every], text
    assert fits(rows, {}) == [True] * 8 and fits(rows, {"$not": {}}) == [False] * 8
    assert fits(rows, {"a": True, "b": False}) == [a and not b for a, b, _ in every]


def test_conditions_on_fields_with_values_of_several_kinds_in_any_order() -> None:
    rows = [{"a": 3, "b": {"c": 1}, "d": 1}, {"a": "x y"}, {}]
    assert Columns(rows).fields == ["a", "b.c", "d"], "those behind a nested field, too"
    assert fits(rows, {"a": {"$contains": "y"}}) == [False, True, False]
    assert fits(rows, {"a": "x y"}) == [False, True, False]
    assert fits(rows, {"a": {"$ne": 3}}) == [False, True, True]
    assert fits(rows, {"a": {"$ne": "x y"}}) == [True, False, True]
    assert Columns([]).fitting(parse_filter("a=1")).dtype == bool


def test_values_that_no_filter_can_name_are_left_out() -> None:
    rows = [{"a": float("inf"), "b": float("nan"), "c": None, "d": [None, {}, -float("inf"), 2], "e": b"x"}]
    assert Columns(rows).fields == ["d"] and fits(rows, "d=2") == [True]


def test_nested_fields_have_a_depth() -> None:
    deep: Any = 1
    for _ in range(9):
        deep = {"x": deep}
    assert Columns([deep]).fields == [".".join("x" * 9)]
    assert Columns([{"x": deep}]).fields == []


def test_an_unknown_field_names_the_known_ones_if_it_may() -> None:
    columns = Columns([{f"f{n:02}": n for n in range(31)}])
    known = ", ".join(f"f{n:02}" for n in range(30))
    for condition in ("x=1", "not x=1", "f01=1 and x=1", "not (f01=1 or x exists)"):
        for names, end in ((True, f"; known fields: {known}"), (False, "")):
            with pytest.raises(InputError) as caught:
                columns.fitting(parse_filter(condition), names=names)
            assert caught.value.message == f"filter: no document has a field 'x'{end}"
            assert caught.value.hint is not None and "year>=1990" in caught.value.hint
        with pytest.raises(InputError, match="known fields"):
            columns.fitting(parse_filter(condition))
    for names, hint in ((True, "metadata comes from front matter"), (False, "such as 'year>=1990")):
        with pytest.raises(InputError) as caught:
            Columns([{}]).fitting(parse_filter("x=1"), names=names)
        assert (
            caught.value.message == f"filter: no document has a field 'x'{': they have no metadata' * names}"
        )
        assert caught.value.hint is not None and caught.value.hint.startswith(hint)
    assert Columns([]).fitting(parse_filter("x=1")).tolist() == []


def test_the_check_is_called_at_every_node() -> None:
    columns, calls = Columns([{"a": 1}]), 0

    def check() -> None:
        nonlocal calls
        calls += 1

    for condition, count in (("a=1", 1), ("not a=1", 2), ("a=1 and a=2 and not a=3", 5), ("a=1 or a=2", 3)):
        calls = 0
        columns.fitting(parse_filter(condition), check=check)
        assert calls == count


def test_texts_of_a_field_by_document() -> None:
    rows = [
        {"d": "x"},
        {"d": 1901},
        {"d": True},
        {},
        {"d": ["y", "z"]},
        {"d": "x"},
        {"d": [7, 9]},
        {"e": "x"},
    ]
    columns = Columns(rows)
    assert columns.each_text("d") == {0: "x", 1: "1901", 4: "z", 5: "x", 6: "9"}
    assert columns.each_text("nothing") == {}
    assert Columns([{"d": 5}, {"d": True}, {"d": "x"}, {"d": 6}]).each_text("d") == {0: "5", 2: "x", 3: "6"}


class Stop(Exception):
    pass


def test_columns_are_read_in_slices_and_go_on_after_a_stop() -> None:
    started, read = 0, 0

    def rows() -> Iterator[str]:
        nonlocal started, read
        started += 1
        for number in range(1_300):
            read += 1
            yield json.dumps({"n": number})

    calls = 0

    def stop_third() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Stop

    reader = ColumnReader(rows)
    assert read == 0
    with pytest.raises(Stop):
        reader.columns(stop_third)
    assert read == 1_024
    columns = reader.columns(stop_third)
    assert (started, read, columns.count, calls) == (1, 1_300, 1_300, 5)
    assert columns.fitting(parse_filter("n>=1299")).tolist() == [False] * 1_299 + [True]
    assert reader.columns(stop_third) is columns and calls == 5


def test_a_thread_that_waits_for_another_can_be_stopped() -> None:
    reader = ColumnReader(lambda: iter(['{"n": 1}']))

    def stop() -> None:
        raise Stop

    with reader._lock, pytest.raises(Stop):
        reader.columns(stop)
    assert reader.columns().count == 1


def test_rows_that_cannot_be_read_are_read_again() -> None:
    texts = ['{"n": 1}', "{"]
    reader = ColumnReader(lambda: iter(texts))
    for _ in range(2):
        with pytest.raises(ValueError, match="Expecting property name"):
            reader.columns()
    texts[1] = '{"n": 2}'
    assert reader.columns().fitting(parse_filter("n exists")).tolist() == [True, True]


def test_a_condition_is_shown_as_it_was_written() -> None:
    assert shown("a=1") == "a=1" and shown({"a": 1}) == "{'a': 1}"
    assert shown("x" * 200) == "x" * 200 and shown("x" * 201) == "x" * 200 + "..."
    with pytest.raises(InputError) as caught:
        allow_condition("a=1 or a!=1")
    assert caught.value.message == (
        "allow: a=1 or a!=1 holds for every document, whatever its metadata: is a variable or a list empty?"
    )
    assert caught.value.hint is not None and caught.value.hint.startswith("say which documents may be seen")
    with pytest.raises(InputError, match=r"^allow: ~ of 'filter: a' needs"):
        allow_condition({"filter: a": {"$contains": ""}})


def test_comparisons_of_different_kinds_are_not_each_others_opposites() -> None:
    """`a<1 or a!=1` is not `a=1 or a!=1`: a document with 1 passes neither."""
    for condition in ("a<1 or a!=1", "a>1 or not a<1", "a~x or a!=x", "a=1 or a!=true", "a=1 or a!='1'"):
        assert not holds_always(parse_filter(condition)), condition
    for condition in ("a<1 or not a<1", "a~x or not a~x", "a!=1 or a in (1, 2)", "a!=1 or a=1"):
        assert holds_always(parse_filter(condition)), condition
    assert holds_always(condition_of({"$or": [{"a": 1}, {"a": {"$nin": [1]}}]}))


def test_what_passes_a_comparison_has_the_field() -> None:
    for condition in ("a!=1 or a exists", "not a>1 or a exists", "not (a=1 and not a exists)"):
        assert holds_always(parse_filter(condition)), condition
    missing = {"a": {"$exists": False}}
    assert holds_always(condition_of({"$or": [missing, {"a": {"$exists": True}}]}))
    assert not holds_always(condition_of({"$or": [missing, {"a": {"$ne": 1}}]}))
    for condition in ("a!=1 or b exists", "a=1 or not a exists", "a=1 or a exists", "b!=1 or a exists"):
        assert not holds_always(parse_filter(condition)), condition


@pytest.mark.parametrize("count", [MOST_ATOMS - 1, MOST_ATOMS, MOST_ATOMS + 1])
def test_up_to_ten_comparisons_are_tried_in_all_combinations(count: int) -> None:
    """The last is one of the others, negated. With more than ten only empty lists decide."""
    parts: list[Any] = [{"a": n} for n in range(count)]
    always = {"$or": [*parts, {"a": {"$ne": 0}}]}
    assert holds_always(condition_of(always)) == (count <= MOST_ATOMS)
    for decided, holds in (
        ({"$or": [*parts, {"b": {"$nin": []}}]}, True),
        ({"$and": [{"$or": [*parts, {}]}, {"$not": {"b": []}}]}, True),
        ({"$and": [*parts, {}]}, False),
        ({"$not": {"$and": [{"$and": parts}, {"b": []}]}}, True),
        ({"$not": {"$or": parts}}, False),
        ({"$or": [{"$not": {"$or": parts}}, {"b": []}]}, False),
    ):
        assert holds_always(condition_of(decided)) == holds, decided


def test_the_package_has_the_names_of_its_modules_and_no_others() -> None:
    """Those of `columns`, which imports NumPy, are looked up on first use."""
    from ketrag_fast.base import filters
    from ketrag_fast.base.filters import columns

    lazy = ("Check", "ColumnReader", "Columns")
    assert [getattr(filters, name) for name in lazy] == [getattr(columns, name) for name in lazy]
    assert all(hasattr(filters, name) for name in filters.__all__)
    with pytest.raises(AttributeError, match="no attribute 'np'"):
        _ = filters.np
