"""The files of the web page, the frame and style of HTML pages, and the page of one graph in a file."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ketrag_fast.types import GraphView

SCRIPTS: Final = (
    "common.js",
    "address.js",
    "markdown.js",
    "graph_picture.js",
    "graph.js",
    "service.js",
    "cards.js",
    "reader.js",
    "answers.js",
    "page.js",
    "documents.js",
    "uploads.js",
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


# The Okabe-Ito palette, darkened or lightened for contrast with its background.
_LIGHT: Final = ("#0072b2", "#c45a00", "#007a5a", "#a8467f", "#7a6a00", "#3a8bc4", "#5c5c66", "#8a3b12")
_DARK: Final = ("#56b4e9", "#e69f00", "#2fc493", "#e38fbf", "#f0e442", "#8fb8ff", "#b5b5c0", "#ff9a6b")


def _colours(values: tuple[str, ...]) -> str:
    return "".join(f"--c{number}:{value};" for number, value in enumerate(values))


STYLE: Final = f"""
:root{{--ink:#1c1d22;--soft:#5b5e69;--line:#dcdee4;--paper:#fff;--panel:#f6f7f9;--bad:#a5231a;{_colours(_LIGHT)}}}
@media(prefers-color-scheme:dark){{:root{{--ink:#e8e9ee;--soft:#a2a6b3;--line:#3a3d47;--paper:#16171b;
--panel:#1f2127;--bad:#ff8a7e;{_colours(_DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
main{{max-width:1000px;margin:0 auto;padding:24px 20px 64px}}
h1{{font-size:26px;line-height:1.2;margin:0 0 4px}}
h2{{font-size:19px;margin:36px 0 10px}}
.about,.note,figcaption{{color:var(--soft)}}
.about{{margin:0 0 20px}}
.note{{margin:4px 0}}
.bad{{color:var(--bad);border-left:3px solid var(--bad);padding-left:10px;overflow-wrap:anywhere}}
figure{{margin:22px 0;padding:14px 16px;background:var(--panel);
border:1px solid var(--line);border-radius:8px}}
figcaption{{margin-bottom:8px}}
svg{{display:block;width:100%;height:auto}}
text{{font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}}
text.t{{fill:var(--soft)}}
table{{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}}
th,td{{padding:5px 10px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}}
th{{color:var(--soft);font-weight:600;vertical-align:bottom}}
th:first-child,td:first-child{{text-align:left;padding-left:0}}
details{{border-bottom:1px solid var(--line);padding:6px 0}}
summary{{cursor:pointer;overflow-wrap:anywhere}}
details p{{margin:6px 0;overflow-wrap:anywhere}}
@media print{{details{{break-inside:avoid}}figure{{break-inside:avoid}}}}
"""
"""The style sheet. It loads no other files or fonts."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def html_page(title: str, body: str, style: str = STYLE, policy: str = POLICY) -> str:
    """Return a complete page around `body`, which is HTML.

    The page's policy prevents text from a document from loading or running anything.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


_GRAPH_SCRIPTS: Final = ("common.js", "graph_picture.js", "graph.js", "graph_part.js", "standalone.js")
_GRAPH_BODY: Final = (
    '<div id="graph-root"></div>\n<script type="application/json" id="graph-data">{}</script>'
)


def graph_page(view: GraphView, title: str) -> str:
    """Return a complete page that loads nothing. Its policy allows only its own script and style."""
    body = (
        f'<header><h1>ketrag</h1><p id="about">{escape(title)}</p></header>\n'
        f"<main>{_GRAPH_BODY.format(embedded_data(view.to_json()))}</main>\n"
        "<noscript>This page needs JavaScript.</noscript>"
    )
    return document(title, text("page.css") + text("graph.css"), _graph_script(), body)


def graph_markup(view: GraphView) -> tuple[str, str]:
    """Return the HTML of a picture with data and script, and the script's digest for the page's policy."""
    script = _graph_script()
    markup = f"{_GRAPH_BODY.format(embedded_data(view.to_json()))}\n<script>{script}</script>\n"
    return markup, digest(script)


def _graph_script() -> str:
    return "\n".join(text(name) for name in _GRAPH_SCRIPTS)
