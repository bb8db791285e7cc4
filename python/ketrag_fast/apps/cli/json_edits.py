"""Change one value of a JSON file with comments, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

_TOKEN: Final = re.compile(
    r'(?P<blank>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<mark>[{}\[\],:])'
    r"|(?P<word>[\w.+-]+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Object:
    """Members of an object: ranges of the values by key. `open` and `close` are the offsets of its braces."""

    members: dict[str, tuple[int, int]]
    open: int
    close: int
    last: int
    """End of the last member, after its comma if it has one; after the brace without members."""
    has_comma: bool


def read_json(text: str) -> Any:
    """Return the value of a JSON text with comments and commas before closing brackets. Raises ValueError."""
    kept: list[str] = []
    for token in _tokens(text):
        if token.text in ("}", "]") and kept and kept[-1] == ",":
            kept.pop()
        kept.append(token.text)
    return json.loads("".join(kept)) if kept else {}


def set_member(text: str, keys: Sequence[str], value: Any) -> str:
    """Return a JSON text in which the value below some keys is another one. Objects on the way are added.

    Raises ValueError if the text is not JSON, or a value on the way is not an object.

    Examples:
        >>> set_member('{"a": 1} // mine', ["b", "c"], True)
        '{"a": 1,\\n  "b": {\\n    "c": true\\n  }\\n} // mine'
    """
    line = "\r\n" if "\r\n" in text else "\n"
    if not any(True for _ in _tokens(text)):
        return (
            text + json.dumps(_nested(keys, value), indent=2, ensure_ascii=False).replace("\n", line) + line
        )
    read_json(text)
    tokens = list(_tokens(text))
    at, depth = 0, 0
    while True:
        found = _object(tokens, at)
        place = found.members.get(keys[depth])
        if place is None:
            return _insert(text, found, keys[depth:], value, depth, line)
        depth += 1
        if depth == len(keys):
            indent = _indent(text, place[0])
            return text[: place[0]] + _printed(value, indent, line) + text[place[1] :]
        at = next(index for index, token in enumerate(tokens) if token.start == place[0])


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"unexpected {text[at]!r} in line {text.count(chr(10), 0, at) + 1}")
        at = match.end()
        if match.lastgroup is not None and match.lastgroup != "blank":
            yield _Token(match.lastgroup, match[0], match.start(), match.end())


def _object(tokens: Sequence[_Token], at: int) -> _Object:
    """Return the members of the object that begins at a token of valid JSON."""
    if tokens[at].text != "{":
        raise ValueError(f"{tokens[at].text[:20]} is where an object is expected")
    members: dict[str, tuple[int, int]] = {}
    begin, last, has_comma = tokens[at].start, tokens[at].end, True
    at += 1
    while tokens[at].text != "}":
        key = json.loads(tokens[at].text)
        end = _end(tokens, at + 2)
        members[key] = (tokens[at + 2].start, tokens[end].end)
        last, has_comma = tokens[end].end, False
        at = end + 1
        if tokens[at].text == ",":
            last, has_comma = tokens[at].end, True
            at += 1
    return _Object(members, begin, tokens[at].start, last, has_comma)


def _end(tokens: Sequence[_Token], at: int) -> int:
    """Return the last token of the value that begins at a token."""
    depth = 0
    while True:
        depth += tokens[at].text in ("{", "[")
        depth -= tokens[at].text in ("}", "]")
        if depth == 0:
            return at
        at += 1


def _insert(text: str, into: _Object, keys: Sequence[str], value: Any, depth: int, line: str) -> str:
    inner = _indent(text, min(place[0] for place in into.members.values())) if into.members else ""
    outer = "" if depth == 0 else _indent(text, into.open)
    inner = inner if len(inner) > len(outer) else outer + "  "
    member = (
        f"{inner}{json.dumps(keys[0], ensure_ascii=False)}: {_printed(_nested(keys[1:], value), inner, line)}"
    )
    comma = "" if into.has_comma else ","
    between = text[into.last : into.close].rstrip()
    return f"{text[: into.last]}{comma}{between}{line}{member}{line}{outer}{text[into.close :]}"


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _printed(value: Any, indent: str, line: str) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", line + indent)


def _indent(text: str, at: int) -> str:
    """Return the blanks at the start of the line of an offset."""
    start = text.rfind("\n", 0, at) + 1
    return text[start : len(text) - len(text[start:].lstrip(" \t"))]
