"""Whatever a model writes: no exception, and no name that the passage does not hold."""

from __future__ import annotations

import json
import math
import random
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.models.extraction.parse import Parsed, parse_reply
from ketrag_fast.models.extraction.records import MAX_DESCRIPTION, MAX_NAME, MAX_TYPE

SOURCE = (
    "Marie Curie\nMarie Curie, née Skłodowska, was born in Warsaw in 1867. With Pierre Curie she found "
    'polonium ("named after Poland") & radium; the Nobel Prize of 1903 was shared with Henri Becquerel. '
    "東京で彼女は話した。"
)
NAMES = (
    "Marie Curie",
    "Warsaw",
    "1867",
    "Pierre Curie",
    "polonium",
    "Nobel Prize",
    "Henri Becquerel",
    "東京",
    "Skłodowska",
)
STRANGERS = (
    "Albert Einstein",
    "Rome",
    "",
    " ",
    "x" * 10_000,
    "\x00",
    "&lt;b&gt;",
    "../../etc/passwd",
    "\ud800",
    "—",
)
_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**50,
    [],
    {},
    [[]],
    {"name": {}},
    float("nan"),
    float("inf"),
    "NaN",
    "",
    "𝔘",
    "\x1b[31m",
)
_JUNK = (
    '"',
    "\\",
    "}",
    "]",
    "{",
    "[",
    ",",
    ":",
    "\n",
    "\x00",
    "```",
    "<think>",
    "<|>",
    "##",
    "\\u12",
    "//",
    "'",
    "𝔘",
    "�",
)


def a_reply(rng: random.Random) -> str:
    """One malformed reply (or a good one, at times)."""
    rows = rng.randint(0, 4), rng.randint(0, 4)
    entities = [[_name(rng), rng.choice(("person", "place", "")), _text(rng)] for _ in range(rows[0])]
    relations = [[_name(rng), _name(rng), _text(rng), rng.choice((1, 5, "7", 2.5))] for _ in range(rows[1])]
    text = rng.choice((_terse, _keyed))(rng, entities, relations)
    for _ in range(rng.randint(0, 3)):
        text = rng.choice(_BREAKS)(rng, text)
    return text


def _name(rng: random.Random) -> Any:
    draw = rng.random()
    if draw < 0.7:
        return rng.choice(NAMES)
    return rng.choice(STRANGERS) if draw < 0.9 else rng.choice(_ODD)


def _text(rng: random.Random) -> Any:
    return rng.choice(("born there", "", 'a "b" {c} [d] <|> ##', "y" * 5_000, "line\nline", *_ODD))


def _terse(rng: random.Random, entities: list[Any], relations: list[Any]) -> str:
    return json.dumps({"e": _odd(rng, entities), "r": _odd(rng, relations)}, ensure_ascii=rng.random() < 0.5)


def _keyed(rng: random.Random, entities: list[Any], relations: list[Any]) -> str:
    keys = ("name", "type", "description"), ("source", "target", "description", "strength")
    value = {
        rng.choice(("entities", "e")): [dict(zip(keys[0], row, strict=True)) for row in entities],
        rng.choice(("relations", "relationships")): [
            dict(zip(keys[1], row, strict=True)) for row in relations
        ],
    }
    if rng.random() < 0.2:
        value = {"result": value}
    return json.dumps(value, indent=rng.choice((None, 2)))


def _odd(rng: random.Random, rows: list[Any]) -> Any:
    if rng.random() < 0.1:
        return rng.choice(_ODD)
    return [row[: rng.randint(0, 5)] if rng.random() < 0.1 else row for row in rows]


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randint(0, len(text))]


def _insert(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(_JUNK) * rng.randint(1, 3) + text[at:]


def _delete(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + text[at + rng.randint(1, 12) :]


def _swap(rng: random.Random, text: str) -> str:
    return text.replace(rng.choice('"[]{},:'), rng.choice(("'", "(", ";", "")), rng.randint(1, 3))


def _around(rng: random.Random, text: str) -> str:
    before = rng.choice(("Sure! {ok} Here it is:\n", "```json\n", '<think>{"e":1}</think>', "[1, 2] ", ""))
    return before + text + rng.choice(("\n```", " I hope this helps {}", "}", ""))


def _repeat(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + text[max(0, at - 30) : at] * rng.randint(1, 40)


def _deep(rng: random.Random, text: str) -> str:
    return rng.choice(("[", '{"e":[')) * rng.choice((20, 3_000)) + text


_BREAKS: tuple[Callable[[random.Random, str], str], ...] = (
    _cut,
    _insert,
    _delete,
    _swap,
    _around,
    _repeat,
    _deep,
)


def plain(text: str) -> str:
    """Letters and digits alone, without case and accents: rougher than the parser's own folding."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in parts if unicodedata.category(c)[0] in "LN")


def check(parsed: Parsed, source: str) -> None:
    held = plain(source)
    found = parsed.extraction
    names = [entity.name for entity in found.entities]
    names += [name for relation in found.relations for name in (relation.source, relation.target)]
    for name in names:
        assert 0 < len(name) <= MAX_NAME
        assert name == name.strip()
        assert all(plain(word).removesuffix("s") in held for word in re.findall(r"\w+", name)), name
    for entity in found.entities:
        assert len(entity.type) <= MAX_TYPE
        assert len(entity.description) <= MAX_DESCRIPTION
    for relation in found.relations:
        assert relation.source.upper() != relation.target.upper()
        assert math.isfinite(relation.strength)
        assert relation.strength > 0
    texts = [
        *names,
        *(e.type + e.description for e in found.entities),
        *(r.description for r in found.relations),
    ]
    joined = "".join(texts)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", joined)
    joined.encode("utf-8")
    assert parsed.how in ("clean", "repaired", "unusable")
    if parsed.how == "unusable":
        assert parsed.why
        assert not names


def run(count: int, seed: int) -> None:
    rng = random.Random(seed)
    seen = {"clean": 0, "repaired": 0, "unusable": 0}
    kept = dropped = 0
    for _ in range(count):
        parsed = parse_reply(a_reply(rng), SOURCE)
        check(parsed, SOURCE)
        seen[parsed.how] += 1
        kept += len(parsed.extraction.entities)
        dropped += parsed.extraction.dropped
    # The generator must reach every way out, or the test says nothing.
    assert min(seen.values()) > count / 20, seen
    assert min(kept, dropped) > count / 2


def test_a_thousand_malformed_replies() -> None:
    run(1_000, 1)


@pytest.mark.soak
def test_a_hundred_thousand_malformed_replies() -> None:
    run(100_000, 2)


@given(st.text(max_size=200), st.text(max_size=100))
def test_any_text_is_a_reply(reply: str, source: str) -> None:
    check(parse_reply(reply, source), source)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ern"), inner, max_size=3)
        ),
    )
)
def test_any_json_is_a_reply(value: object) -> None:
    import json

    check(parse_reply(json.dumps(value), "a text"), "a text")
