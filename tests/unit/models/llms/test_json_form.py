"""A schema's grammar and cursor, against each other, and against what they must refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.llms.llama.json_cursor import JsonCursor, MismatchError
from ketrag_fast.models.llms.llama.json_form import compact, form_of, grammar_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "e": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "array",
                "prefixItems": [
                    {"type": "string", "maxLength": 5},
                    {"enum": ["person", "place", "pla"]},
                    {"type": ["number", "null"]},
                ],
                "minItems": 3,
                "maxItems": 3,
            },
        },
        "n": {"enum": [1, 10, 100]},
        "ok": {"type": "boolean"},
    },
    "required": ["e", "n", "ok"],
    "additionalProperties": False,
}
names = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
rows = st.tuples(
    names,
    st.sampled_from(["person", "place", "pla"]),
    st.none() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6, allow_nan=False),
)
values = st.builds(
    lambda e, n, ok: {"e": e, "n": n, "ok": ok},
    st.lists(rows, max_size=3),
    st.sampled_from([1, 10, 100]),
    st.booleans(),
)


@given(values)
@settings(max_examples=300, deadline=None)
def test_what_is_forced_is_what_follows(value: dict[str, Any]) -> None:
    text = compact(value)
    cursor = JsonCursor(form_of(SCHEMA))
    for place, sign in enumerate(text):
        assert not cursor.finished
        assert text[place:].startswith(cursor.forced())
        cursor.feed(sign)
    assert cursor.finished


@given(values, st.data())
@settings(max_examples=200, deadline=None)
def test_a_text_is_taken_only_if_it_has_the_form(value: dict[str, Any], data: st.DataObject) -> None:
    text = compact(value)
    place = data.draw(st.integers(0, len(text) - 1))
    broken = text[:place] + data.draw(st.sampled_from('"]}{,:x9')) + text[place + 1 :]
    cursor = JsonCursor(form_of(SCHEMA))
    try:
        cursor.feed(broken)
    except MismatchError:
        return
    if cursor.finished:
        again = json.loads(broken)
        assert list(again) == ["e", "n", "ok"]
        assert all(len(row) == 3 and row[1] in ("person", "place", "pla") for row in again["e"])


def test_what_is_forced_at_the_start_and_at_full_rows() -> None:
    cursor = JsonCursor(form_of(SCHEMA))
    assert cursor.forced() == '{"e":['
    cursor.feed('{"e":[["abcde')
    assert cursor.forced() == '","'  # five characters are all it may have
    cursor.feed('","pe')
    assert cursor.forced() == 'rson",'
    cursor.feed('rson",null')
    assert cursor.forced() == "]"
    cursor.feed('],["","place",1],["","place",2]')
    assert cursor.forced() == '],"n":'


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array"},
        {"type": "string", "pattern": "a+"},
        {"$ref": "#/$defs/x"},
        {"type": "object", "properties": {"a": {"type": "strange"}}},
        {"type": "integer", "minimum": 3},
        {"anyOf": [{"type": "string"}, {"enum": ["a"]}]},
        {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
        {"enum": []},
        {"type": "string", "minLength": 5, "maxLength": 2},
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]},
    ],
)
def test_what_no_grammar_is_made_for_is_an_error(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        form_of(schema)


def test_signs_of_all_planes_are_written_into_the_grammar() -> None:
    text = grammar_of(form_of({"enum": ['a"\\', "é", "😀"]}))
    assert '"\\"a\\\\\\"\\\\\\\\\\""' in text
    assert "\\u00E9" in text
    assert "\\U0001F600" in text
