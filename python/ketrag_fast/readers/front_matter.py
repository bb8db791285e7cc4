"""Front matter: a block of `name: value` lines between `---`, or of TOML between `+++`.

Reads the part of YAML that front matter uses: plain and quoted strings, numbers, booleans, and lists on one
line or below. Anything else is kept as a string; nothing is an error.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from typing import Any, NamedTuple

_NAME = re.compile(r"([A-Za-z_][\w .-]{0,60}?)[ \t]*:(?:[ \t]+([^ \t\n].*)?)?")
_ITEM = re.compile(r"[ \t]*-[ \t]+([^ \t\n].*)")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?")
_MOST = 20_000
_PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}


class FrontMatter(NamedTuple):
    """Metadata, the offset of the text after them, and whether they are all that is between the marks."""

    metadata: dict[str, Any]
    end: int
    is_whole: bool


def front_matter(text: str) -> FrontMatter:
    """Return the front matter; ({}, 0, False) if there is none."""
    mark = text[:3]
    if mark not in ("---", "+++") or text[3:].split("\n", 1)[0].strip():
        return FrontMatter({}, 0, False)
    lines = text[:_MOST].splitlines(keepends=True)
    ends = ("---", "...") if mark == "---" else ("+++",)
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in ends:
            body = lines[1:number]
            end = sum(map(len, lines[: number + 1]))
            metadata, is_whole = _toml("".join(body)) if mark == "+++" else _yaml(body)
            return FrontMatter(metadata, end, is_whole)
    return FrontMatter({}, 0, False)


def _toml(body: str) -> tuple[dict[str, Any], bool]:
    try:
        found = {name: _json(value) for name, value in tomllib.loads(body).items()}
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}, False
    return found, bool(found)


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_json(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return None
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else value


def _yaml(lines: list[str]) -> tuple[dict[str, Any], bool]:
    """Return the values, and whether every line belongs to one of them."""
    found: dict[str, Any] = {}
    name, is_whole = "", True
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item = _ITEM.fullmatch(line.rstrip())
        if item is not None and name:
            held = found[name]
            found[name] = [*(held if isinstance(held, list) else []), _value(item[1])]
            continue
        entry = _NAME.fullmatch(line.rstrip())
        if entry is not None and not line[0].isspace():
            name = entry[1]
            found[name] = _value(entry[2] or "")
        elif name and (isinstance(found[name], str) or (found[name] is None and line[0].isspace())):
            found[name] = f"{found[name] or ''} {line.strip()}".strip()  # a string continues below
        else:
            is_whole = False
    found = {key: value for key, value in found.items() if value is not None}
    return found, is_whole and bool(found)


def _value(text: str) -> Any:
    plain = text.strip()
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "\"'":
        return plain[1:-1].strip()
    if plain.startswith("[") and plain.endswith("]"):
        return [_value(part) for part in plain[1:-1].split(",") if part.strip()]
    if plain.lower() in _PLAIN:
        return _PLAIN[plain.lower()]
    if _NUMBER.fullmatch(plain):
        return float(plain) if "." in plain else int(plain)
    return "" if plain in ("|", ">", "|-", ">-") else plain
