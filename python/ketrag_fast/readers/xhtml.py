"""Web pages written as XML: `<a id="x"/>` is an empty element there, and an open one to a parser of HTML."""

from __future__ import annotations

import re
from typing import Final

_HEAD: Final = 2_000
_SIGNS: Final = ("<?xml", "xhtml")
"""One of these is in the first lines of a page that is written as XML."""
_EMPTY: Final = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)((?:\s[^<>]*)?)/>")
_VOID: Final = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"),
        *("track", "wbr", "script", "style", "textarea"),
    )
)
"""Elements that have no end in HTML, and those whose content is not markup."""


def close_empty_elements(markup: str) -> str:
    """Return a page written as XML with an end for each empty element; any other page as it is."""
    head = markup[:_HEAD].lower()
    if "/>" not in markup or not any(sign in head for sign in _SIGNS):
        return markup
    return _EMPTY.sub(_closed, markup)


def _closed(found: re.Match[str]) -> str:
    name = found[1]
    return found[0] if name.lower() in _VOID else f"<{name}{found[2]}></{name}>"
