"""`ketrag export html`: the web page with passages, documents and graphs of an index in one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from ketrag_fast.errors import ModeUnavailable
from ketrag_fast.page.assets import document, embedded_data, text

if TYPE_CHECKING:
    from ketrag_fast.index import Index
    from ketrag_fast.types import GraphView, Listed

_SCRIPTS: Final = (
    "common.js",
    "address.js",
    "markdown.js",
    "graph_picture.js",
    "graph.js",
    "graph_part.js",
    "offline.js",
    "cards.js",
    "reader.js",
    "answers.js",
    "page.js",
    "documents.js",
    "themes.js",
    "path.js",
    "views.js",
)
MOST_NODES: Final = 3_000
"""Maximum number of nodes of each graph in a file."""
MOST_TEXT: Final = 20_000_000
"""Maximum total length of passages in a file, in characters. Further passages are left out and counted."""
_QUERY_NODES: Final = 300
_COLUMNS: Final = ("unit", "document", "start", "end", "page", "location", "text")
_VARYING: Final = ("query_id", "timings_ms", "generation")


def write(
    index: Index,
    stream: IO[bytes],
    graphs: Sequence[str],
    units: Sequence[int],
    tick: Callable[[int], None],
    *,
    around: str | None = None,
    query: str | None = None,
) -> list[GraphView]:
    """Write a page with some units and graphs of an index, and return the pictures of the graphs.

    With `around` or `query`, the pictures show the surroundings of a node, or of the passages of a query,
    whose context is stored in the file.
    """
    limit = MOST_NODES if around is None and query is None else _QUERY_NODES
    views = []
    for name in graphs:
        views.append(index.inspect.graph(name, around=around, question=query, limit=limit))
        tick(0)
    data = {
        "schema": "ketrag/workbench/1",
        **_content(index, units, tick),
        "views": {view.graph: _stable(view.to_json()) for view in views},
        "contexts": [] if query is None else [_context(index, query)],
        "missing": index.inspect.missing_graphs(),
    }
    # Themes describe the whole index, so a file with a part of its passages has none.
    if len(data["units"]["unit"]) == sum(one.units for one in index.inspect.documents()):
        data |= _themes(index, data["documents"])
    examples = [query] if query is not None else list(index.inspect.examples()) if around is None else []
    data["index"] |= {"graphs": list(graphs), "examples": examples}
    stream.write(_page(data).encode())
    return views


def _content(index: Index, units: Sequence[int], tick: Callable[[int], None]) -> dict[str, Any]:
    """Return documents and passages of some units, and the statistics that are equal for every build."""
    listed = index.inspect.documents()
    owner = {}
    for number, one in enumerate(listed):
        owner.update(dict.fromkeys(range(one.unit, one.unit + one.units), number))
    number_of: dict[int, int] = {}
    kept: list[Listed] = []
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    size = 0
    for unit in units:
        span = index.inspect.around(unit, 0, 0)[0][1]
        size += len(span.text)
        if size > MOST_TEXT:
            break
        place = number_of.setdefault(owner[unit], len(number_of))
        if place == len(kept):
            kept.append(listed[owner[unit]])
        location = index.inspect.location(unit, span.start, span.end)
        values = (unit, place, span.start, span.end, location.get("page"), location, span.text)
        for column, value in zip(rows.values(), values, strict=True):
            column.append(value)
        tick(1)
    documents = [
        one.to_json() | {"unit": rows["unit"][first], "units": count}
        for one, (first, count) in zip(kept, _extents(rows["document"]), strict=True)
    ]
    stats = index.stats()
    return {
        "index": {
            "name": "this file",
            "generation": 0,
            "documents": len(documents),
            "documents_in_all": len(listed),
            "modes": ["keywords"],
            "kinds": list(index.inspect.kinds),
            "answers": False,
        },
        "stats": {
            "modes": stats["modes"],
            "counts": stats["counts"] | {"passages in this file": len(rows["unit"])},
            "edges": stats["edges"],
            "backends": stats["backends"],
            "stages": {},
            "failures": [],
        },
        "documents": documents,
        "units": rows,
    }


def _themes(index: Index, documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the themes, each with the positions of its documents; empty if the index has no keywords."""
    try:
        found = index.themes()
    except ModeUnavailable:
        return {}
    place = {one["document"]: at for at, one in enumerate(documents)}
    own = {
        theme.id: [place[one.document] for one in index.inspect.documents(theme=theme.id)]
        for theme in found.walk()
    }
    return {"themes": found.to_json() | {"generation": 0}, "documents_of_themes": own}


def _extents(owners: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first row and the number of rows of each document. `owners` must be ascending."""
    found: list[tuple[int, int]] = []
    for row, owner in enumerate(owners):
        if owner == len(found):
            found.append((row, 1))
        else:
            found[owner] = (found[owner][0], found[owner][1] + 1)
    return found


def _context(index: Index, query: str) -> dict[str, Any]:
    """Return the context of a query with explanations, without timings and other values that vary."""
    context = index.retrieve(query, explain=True).to_json()
    return {name: value for name, value in context.items() if name not in _VARYING}


def _stable(view: dict[str, Any]) -> dict[str, Any]:
    """Remove the generation number from a picture, so that equal indexes give equal files."""
    return {name: value for name, value in view.items() if name != "generation"}


def _page(data: dict[str, Any]) -> str:
    """Return the complete page: the body of `ketrag serve`, with embedded data instead of a server."""
    _, _, body = text("page.html").partition("<body>\n")
    body, _, _ = body.partition("</body>")
    held = f'<script type="application/json" id="file-data">{embedded_data(data)}</script>'
    script = "\n".join(text(name) for name in _SCRIPTS).replace('"use strict";\n', "")
    return document("ketrag", text("page.css") + text("graph.css"), f'"use strict";\n{script}', body + held)
