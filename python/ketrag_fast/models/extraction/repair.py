"""Extract JSON from a reply, and repair it if the meaning is certain.

Repaired are: thoughts, text and code fences around the JSON; a comma before a closing bracket; control
characters inside a string; a needless backslash; and a truncated end, where complete records are kept and the
last one is dropped. Anything else stays broken.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_REPLY: Final = 1_000_000
"""Maximum length in characters; longer replies are truncated."""
MAX_DEPTH: Final = 16
_THOUGHTS: Final = ("think", "thinking", "reasoning")
_TOKEN: Final = re.compile(
    r'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")|(?P<mark>[\[\]{},:])|(?P<plain>[^\s\[\]{},:"]+)|(?P<open>".*)',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt]|.)', re.DOTALL)
_TRIALS: Final = 4
"""Number of braces tried as the beginning of the object: text before it may contain some."""
_RECORDS: Final = 2
"""Depth of a record: in the object, in a list."""
_CLOSERS: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Mended:
    """A repaired reply. `value` is None if nothing could be parsed; `why` is the problem; `lost` is the
    number (0 or 1) of truncated records.
    """

    value: dict[str, Any] | None
    why: str | None = None
    lost: int = 0


def read_json(text: str) -> Mended:
    """Return the JSON object of a reply. Never raises."""
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
    """Return a text without its first complete thought, in linear time."""
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
    """Return a JSON object, or None for anything else, huge numbers and deep nesting."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rebuilt(text: str, begin: int) -> tuple[str | None, int | None]:
    """Rebuild the object at `begin` token by token; return (object, None).

    If it is truncated, return its complete records and the number (0 or 1) of truncated ones.
    """
    out: list[str] = []
    stack: list[str] = []
    # length of `out` after a closed record or list, and the missing closers
    kept: tuple[int, str] | None = None
    opened = False
    for found in _TOKEN.finditer(text, begin):
        sign = found.group()
        if found.lastgroup == "open":  # a string without an end: the reply was truncated in it
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
