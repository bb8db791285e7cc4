"""JSON out of a reply, mended only where it is certain what was meant.

Certain are: thoughts, words and code fences around the JSON; a comma before a closing bracket; control
characters inside a text; a backslash before a character that needs none; and an end that is missing, where
all that was closed is kept and what was begun is dropped. Anything else is left broken.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_REPLY: Final = 1_000_000
"""Characters. What is longer is read as if it had been cut there."""
MAX_DEPTH: Final = 16
_THOUGHTS: Final = ("think", "thinking", "reasoning")
_TOKEN: Final = re.compile(
    r'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")|(?P<mark>[\[\]{},:])|(?P<plain>[^\s\[\]{},:"]+)|(?P<open>".*)',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt]|.)', re.DOTALL)
_TRIALS: Final = 4
"""Braces that may be tried as the object's beginning: words before it may hold some."""
_RECORDS: Final = 2
"""A record stands this deep: in the object, in a list."""
_CLOSERS: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Mended:
    """`value` is None where nothing could be read; `why` says what was wrong. `lost`: records (0 or 1)
    that were begun when the reply was cut.
    """

    value: dict[str, Any] | None
    why: str | None = None
    lost: int = 0


def read_json(text: str) -> Mended:
    """The JSON object of a reply. Never raises."""
    short = text[:MAX_REPLY]
    if len(short) == len(text) and (value := _loads(short)) is not None:
        return Mended(value)
    body = _without_thought(short)
    begin, cut_early = body.find("{"), False
    for _ in range(_TRIALS):
        if begin < 0:
            break
        rebuilt, lost = _rebuilt(body, begin)
        cut_early |= rebuilt is None and lost is not None
        value = None if rebuilt is None else _loads(rebuilt)
        if value is not None:
            why = "text around the JSON, or slips inside it" if lost is None else "cut off"
            return Mended(value, why, lost or 0)
        begin = body.find("{", begin + 1)
    if cut_early:
        return Mended(None, "cut off before the end of its first record")
    return Mended(None, "broken JSON" if "{" in body else "no JSON object in it")


def _without_thought(text: str) -> str:
    """The text without its first thought that ends; in time proportional to its length."""
    spans = []
    for name in _THOUGHTS:
        begin = text.find(f"<{name}>")
        end = text.find(f"</{name}>", begin) if begin >= 0 else -1
        if end >= 0:
            spans.append((begin, end + len(name) + 3))
    if not spans:
        return text
    begin, end = min(spans)
    return text[:begin].rstrip() + text[end:]


def _loads(text: str) -> dict[str, Any] | None:
    """None for all that is no object; for huge numbers and deep nesting too."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rebuilt(text: str, begin: int) -> tuple[str | None, int | None]:
    """(The object that begins at `begin`, token by token, None); where its end is missing, what was
    closed before, and whether (1 or 0) a record was begun after.
    """
    out: list[str] = []
    stack: list[str] = []
    kept: tuple[int, str] | None = None  # length of `out` after a closed record or list, and what closes it
    opened = False
    for found in _TOKEN.finditer(text, begin):
        sign = found.group()
        if found.lastgroup == "open":  # a text without an end: the reply was cut in it
            opened = True
            break
        if found.lastgroup == "text":
            out.append(_ESCAPE.sub(_escape, sign))
        elif sign in _CLOSERS:
            stack.append(_CLOSERS[sign])
            out.append(sign)
            if len(stack) > MAX_DEPTH:
                return None, None
        elif sign in "}]":
            if not stack or stack.pop() != sign:
                return None, None
            while out and out[-1] == ",":
                out.pop()
            out.append(sign)
            if not stack:
                return " ".join(out), None
            if len(stack) <= _RECORDS:
                kept = len(out), "".join(reversed(stack))
        else:
            out.append(sign)
    if kept is None:
        return None, 1
    lost = opened or any(sign != "," for sign in out[kept[0] :])
    return " ".join(out[: kept[0]]) + kept[1], int(lost)


def _escape(found: re.Match[str]) -> str:
    body = found[1]
    return found[0] if len(body) > 1 or body in '"\\/bfnrt' else body
