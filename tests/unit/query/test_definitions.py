"""Names that source code defines, and prose that only looks like it."""

from __future__ import annotations

import time

import pytest

from ketrag_fast.query.definitions import defined_names, matching_definitions


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("class Context:", "Context"),
        ("    async def render(self):", "render"),
        ("export const ZodObject = 1", "ZodObject"),
        ("pub(crate) struct Reader<'a> {", "Reader"),
        ("func (r *Reader) Read(p []byte) {", "Read"),
        ("defmodule Plug.Conn do", "Conn"),
        ("#define UV_MAX 3", None),
        ("int uv_run(uv_loop_t* loop) {", "uv_run"),
        ("  public void read(int x) {", "read"),
        ("local function start()", "start"),
        ("MAX_SIZE: Final = 3", "MAX_SIZE"),
        ("class that has a name", None),
        ("A class of its own", None),
        ("  uv_run(loop);", None),
        ("return read(x)", None),
        ("    let local = 1", None),
        ("if read(x) {", None),
        ("typedef enum {", None),
    ],
)
def test_definitions_are_told_from_uses_and_prose(text: str, name: str | None) -> None:
    assert [found for _, found in defined_names(text)] == ([] if name is None else [name])


def test_offsets_are_those_of_lines() -> None:
    text = "x = 1\nclass A:\n    def go(self):\n        pass\n"
    assert [(text.count("\n", 0, at) + 1, name) for at, name in defined_names(text)] == [(2, "A"), (3, "go")]


@pytest.mark.parametrize(
    "text", ["pub " * 50_000, "a " * 100_000 + "(", "template <" * 20_000, "x::" * 100_000]
)
def test_long_lines_take_linear_time(text: str) -> None:
    started = time.process_time()
    assert list(defined_names(text)) == []
    assert time.process_time() - started < 10


def test_definitions_that_say_what_a_query_says() -> None:
    text = (
        "NULL = 1\ndef read():\n    pass\ndef guess_json_utf(data):\n    pass\nclass JsonReader:\n    pass\n"
    )
    found = [name for _, name in matching_definitions(text, "guess the encoding of JSON bytes", 3)]
    assert found == ["guess_json_utf", "JsonReader"]
    assert matching_definitions(text, "the weather", 3) == []
    assert len(matching_definitions(text, "guess the JSON", 1)) == 1
    assert [name for _, name in matching_definitions(text, "read a file", 3)] == ["read"]
