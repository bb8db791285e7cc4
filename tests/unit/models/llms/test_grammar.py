"""The grammar of a schema, checked with llama.cpp itself, and the schemas that it must refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.llms.llama.grammar import grammar_of
from ketrag_fast.models.llms.llama.weights import LlamaWeights, WeightsChoice, make_grammar

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
                    {"enum": ["person", "place", 'pl"a\\', "é😀"]},
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
names = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=5)
rows = st.tuples(
    names,
    st.sampled_from(["person", "place", 'pl"a\\', "é😀"]),
    st.none()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3)),
)
values = st.builds(
    lambda e, n, ok: {"e": e, "n": n, "ok": ok},
    st.lists(rows, max_size=3),
    st.sampled_from([1, 10, 100]),
    st.booleans(),
)


@pytest.fixture(scope="module")
def accepts(tiny_gguf: Path) -> Iterator[Callable[[dict[str, Any], str], bool]]:
    """Whether llama.cpp takes a whole text under the grammar of a schema."""
    weights = LlamaWeights(tiny_gguf)
    choice = WeightsChoice(weights)

    def whole(schema: dict[str, Any], text: str) -> bool:
        grammar = make_grammar(weights, grammar_of(schema))
        try:
            for token in [*weights.tokenise(text, own=False), weights.eos]:
                if not choice.allows(grammar, token):
                    return False
                weights.api.llama_sampler_accept(grammar, token)
            return True
        finally:
            weights.api.llama_sampler_free(grammar)

    yield whole
    weights.close()


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(values, st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_text_is_taken_only_if_it_has_the_form(
    accepts: Callable[[dict[str, Any], str], bool], value: dict[str, Any], data: st.DataObject
) -> None:
    text = compact(value)
    assert accepts(SCHEMA, text)
    place = data.draw(st.integers(0, len(text) - 1))
    broken = text[:place] + data.draw(st.sampled_from('"]}{,:x9\n')) + text[place + 1 :]
    if accepts(SCHEMA, broken):
        again = json.loads(broken)
        assert list(again) == ["e", "n", "ok"]
        assert all(len(row) == 3 and row[1] in ("person", "place", 'pl"a\\', "é😀") for row in again["e"])


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"const": "always"}, ['"always"'], ['"never"', ""]),
        ({"anyOf": [{"type": "string"}, {"enum": [2]}]}, ['"a"', "2"], ["3"]),
        ({"type": "integer"}, ["0", "-17"], ["1.5", "01"]),
        ({"type": "array", "items": {"type": "null"}, "minItems": 2}, ["[null,null]"], ["[null]", "[]"]),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 1}, ["[]", "[null]"], ["[null,null]"]),
        ({"type": "string", "minLength": 2, "maxLength": 2}, ['"ab"'], ['"a"', '"abc"']),
    ],
)
def test_small_schemas(accepts: Any, schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    assert all(accepts(schema, text) for text in good)
    assert not any(accepts(schema, text) for text in bad)


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
        {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
        {"enum": []},
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]},
    ],
)
def test_what_no_grammar_is_made_for_is_an_error(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        grammar_of(schema)
