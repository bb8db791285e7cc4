"""The files of the web page, and functions that embed scripts, styles and data in a standalone page."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

SCRIPTS: Final = (
    "common.js",
    "markdown.js",
    "graph_picture.js",
    "graph.js",
    "service.js",
    "page.js",
    "documents.js",
    "themes.js",
    "path.js",
    "views.js",
)
"""The scripts of the page that `ketrag serve` serves, in loading order."""
FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/graph.css": ("graph.css", "text/css; charset=utf-8"),
    **{f"/{name}": (name, "text/javascript; charset=utf-8") for name in SCRIPTS},
}
"""The file and media type at each path of that page."""


@cache
def content(name: str) -> bytes:
    """Return a file of the page."""
    return (files("ketrag_fast.page") / "static" / name).read_bytes()


def text(name: str) -> str:
    """Return a file of the page as text."""
    return content(name).decode()


def digest(script_or_style: str) -> str:
    """Return the digest of an embedded script or style, as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script_or_style.encode()).digest()).decode()}"


def embedded_data(value: Any) -> str:
    """Return a value as JSON that can be the content of a script element."""
    # "<" is the only character that could end the element or start a comment in it.
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return data.encode("utf-8", "replace").decode()


def document(title: str, style: str, script: str, body: str) -> str:
    """Return a complete page that loads nothing. Its policy allows only its own style and script."""
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )
