"""Replies as models should not write them: good ones, broken in every way that was seen and some more."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

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
    text = rng.choice((_terse, _keyed, _delimited))(rng, entities, relations)
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


def _delimited(rng: random.Random, entities: list[Any], relations: list[Any]) -> str:
    rows = [("entity", *row) for row in entities] + [("relationship", *row) for row in relations]
    if rows and rng.random() < 0.3:
        rows.append(rng.choice(rows)[:2])
    body = "##\n".join("(" + "<|>".join(str(field) for field in row) + ")" for row in rows)
    return body + rng.choice(("<|COMPLETE|>", "", "##"))


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
