"""Filters over any metadata: columns say what a plain look at each document says."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.base.filters import Columns, condition_of, parse_filter
from ketrag_fast.errors import InputError

FIELDS = ("a", "b", "c.d", "Größe")
texts = st.sampled_from(["", "x", "10", "true", "ä ö", "it's", 'say "no"', "a\\b", "and", "x=y"])
numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, 1e300, 10**400, 2**53, 2**53 + 1, float(2**53), float("inf"), float("nan"), -0.0]),
)
single = st.one_of(texts, numbers, st.booleans())
values = st.one_of(single, st.none(), st.lists(single, max_size=3))
asked = st.one_of(texts, st.integers(-3, 3), st.sampled_from([0.5, 1e300, -0.0]), st.booleans())
documents = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "a": values,
            "b": values,
            "Größe": values,
            "c": st.fixed_dictionaries({}, optional={"d": values}),
        },
    ),
    max_size=6,
)
ORDERS = {
    "$gt": lambda x, y: x > y,
    "$gte": lambda x, y: x >= y,
    "$lt": lambda x, y: x < y,
    "$lte": lambda x, y: x <= y,
}
one_field = st.one_of(
    asked,
    st.lists(asked, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["$eq", "$ne", *ORDERS]), asked, min_size=1, max_size=2),
    st.dictionaries(
        st.sampled_from(["$in", "$nin"]), st.lists(asked, min_size=1, max_size=3), min_size=1, max_size=2
    ),
    st.booleans().map(lambda there: {"$exists": there}),
)
conditions = st.recursive(
    st.dictionaries(st.sampled_from(FIELDS), one_field, max_size=2),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"$and": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"$or": parts}),
        inner.map(lambda part: {"$not": part}),
    ),
    max_leaves=6,
)


def held(document: dict[str, Any], field: str) -> list[Any]:
    """The values of a field, numbers as numbers."""
    value: Any = document
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    many = value if isinstance(value, list) else [value]
    return [
        one
        for one in many
        if isinstance(one, (str, bool, int)) or (isinstance(one, float) and math.isfinite(one))
    ]


def alike(x: Any, y: Any) -> bool:
    return kind(x) is kind(y)


def kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def fits(document: dict[str, Any], condition: Any) -> bool:
    return all(
        all(fits(document, part) for part in value)
        if name == "$and"
        else any(fits(document, part) for part in value)
        if name == "$or"
        else not fits(document, value)
        if name == "$not"
        else fits_field(held(document, name), value)
        for name, value in condition.items()
    )


def fits_field(there: list[Any], value: Any) -> bool:
    if isinstance(value, list):
        return any(equal(there, one) for one in value)
    if not isinstance(value, dict):
        return equal(there, value)
    for name, wanted in value.items():
        if name == "$exists":
            ok = bool(there) == wanted
        elif name in ("$eq", "$ne"):
            ok = equal(there, wanted) == (name == "$eq")
        elif name in ("$in", "$nin"):
            ok = any(equal(there, one) for one in wanted) == (name == "$in")
        else:
            ok = any(alike(x, wanted) and ORDERS[name](x, wanted) for x in there)
        if not ok:
            return False
    return True


def equal(there: list[Any], wanted: Any) -> bool:
    return any(alike(x, wanted) and x == wanted for x in there)


def named(condition: Any) -> set[str]:
    found: set[str] = set()
    for name, value in condition.items():
        if name in ("$and", "$or"):
            found |= {field for part in value for field in named(part)}
        elif name == "$not":
            found |= named(value)
        else:
            found.add(name)
    return found


@given(documents, conditions)
def test_columns_say_what_a_look_at_each_document_says(rows: list[Any], condition: Any) -> None:
    stored = [json.loads(json.dumps(row)) for row in rows]
    columns = Columns(stored)
    there = {field for field in FIELDS if any(held(row, field) for row in stored)}
    assert set(columns.fields) == there
    tree = condition_of(condition)
    if rows and not named(condition) <= there:
        try:
            columns.fitting(tree, names=False)
        except InputError as error:
            assert not any(field in str(error) for field in there - named(condition) if len(field) > 1)
            return
        raise AssertionError("a field that no document has was passed over")
    assert columns.fitting(tree).tolist() == [fits(row, condition) for row in stored]


def words(condition: Any) -> str:
    """The same filter in words."""
    parts = []
    for name, value in condition.items():
        if name in ("$and", "$or"):
            parts.append("(" + f" {name[1:]} ".join(words(part) for part in value) + ")")
        elif name == "$not":
            parts.append(f"not ({words(value)})")
        else:
            parts.append(words_of(quoted(name), value))
    return " and ".join(parts)


def words_of(field: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{field} in ({', '.join(map(said, value))})"
    if not isinstance(value, dict):
        return f"{field} = {said(value)}"
    signs = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
    parts = []
    for name, wanted in value.items():
        if name == "$exists":
            parts.append(f"{field} exists" if wanted else f"not {field} exists")
        elif name in ("$in", "$nin"):
            listed = f"{field} in ({', '.join(map(said, wanted))})"
            parts.append(listed if name == "$in" else f"not {listed}")
        else:
            parts.append(f"{field}{signs[name]}{said(wanted)}")
    return " and ".join(parts)


def said(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def says_something(condition: Any) -> bool:
    parts = [
        part
        for name, value in condition.items()
        if name.startswith("$")
        for part in (value if isinstance(value, list) else [value])
    ]
    return bool(condition) and all(map(says_something, parts))


@given(documents, conditions.filter(says_something))
def test_words_mean_the_same_as_the_mapping(rows: list[Any], condition: Any) -> None:
    columns = Columns([{**row, "a": [row.get("a"), 0], "b": 0, "c": {"d": [0]}, "Größe": 0} for row in rows])
    one, two = columns.fitting(parse_filter(words(condition))), columns.fitting(condition_of(condition))
    assert one.tolist() == two.tolist()


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_an_input_error(text: str) -> None:
    try:
        parse_filter(text)
    except InputError as error:
        assert str(error).startswith("filter: ")


anything = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(["$and", "$or", "$not", "$in", "$gt", "$exists", "a"]), st.text(max_size=3)
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)


@given(anything)
def test_any_value_is_a_filter_or_an_input_error(value: Any) -> None:
    try:
        condition_of(value)
    except InputError as error:
        assert str(error).startswith("filter: ")
