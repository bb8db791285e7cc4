"""`ketrag graph NAME --html FILE`: a picture of a graph as one HTML file, with data and script embedded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from ketrag_fast.page.assets import digest, document, embedded_data, text

if TYPE_CHECKING:
    from ketrag_fast.types import GraphView

_SCRIPTS: Final = ("common.js", "graph_picture.js", "graph.js", "graph_part.js", "standalone.js")
_BODY: Final = '<div id="graph-root"></div>\n<script type="application/json" id="graph-data">{}</script>'


def page(view: GraphView, title: str) -> str:
    """Return a complete page that loads nothing. Its policy allows only its own script and style."""
    body = (
        f'<header><h1>ketrag</h1><p id="about">{escape(title)}</p></header>\n'
        f"<main>{_BODY.format(embedded_data(view.to_json()))}</main>\n"
        "<noscript>This page needs JavaScript.</noscript>"
    )
    return document(title, text("page.css") + text("graph.css"), _script(), body)


def embedded(view: GraphView) -> tuple[str, str]:
    """Return the HTML of a picture with data and script, and the script's digest for the page's policy."""
    script = _script()
    markup = f"{_BODY.format(embedded_data(view.to_json()))}\n<script>{script}</script>\n"
    return markup, digest(script)


def _script() -> str:
    return "\n".join(text(name) for name in _SCRIPTS)
