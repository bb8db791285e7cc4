"""JSON as bytes: the same data as the standard library's, and nothing in it that a terminal obeys."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.apps.terminal import in_json
from tests.support.parts import part

part("orjson", "server")
from ketrag_fast.apps.server.replies import event, json_bytes  # noqa: E402

DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DATA)
def test_the_same_data(data: object) -> None:
    assert json.loads(json_bytes(data)) == json.loads(json.dumps(data))
    assert b"\n" not in json_bytes(data)


def test_every_character_is_escaped_as_the_command_does() -> None:
    for number in (*range(0xD800), *range(0xE000, 0x10000), *range(0xE0000, 0xE0100)):
        text = {"a": f"x{chr(number)}y"}
        plain = json.dumps(text, ensure_ascii=False, separators=(",", ":"))
        assert json_bytes(text) == in_json(plain).encode(), hex(number)


def test_numbers_of_numpy_and_events() -> None:
    assert json_bytes({"a": np.float32(0.5), "b": np.arange(3, dtype=np.uint32), 3: (1, 2)}) == (
        b'{"a":0.5,"b":[0,1,2],"3":[1,2]}'
    )
    assert event({"text": "a\nb"}, "text") == b'event: text\ndata: {"text":"a\\nb"}\n\n'
