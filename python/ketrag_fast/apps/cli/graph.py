"""`ketrag graph NAME`: print a node with its neighbours, or draw them into an HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import FILTER, Command, argument, option, settings
from ketrag_fast.apps.cli.terminal import inline
from ketrag_fast.errors import ConfigError, ModeUnavailable

_LIMIT = 300
_CITATIONS = "citations"
"""The graph of `--document`."""


@dataclass(frozen=True, kw_only=True)
class Graph(Command):
    """Show the neighbourhood of a node in the graphs of the index: an entity, a concept or a document. Names
    are matched without case; similar names are suggested. With --html, draw the graph around NAME, or without
    NAME the whole graph or its best-linked part, into one file that needs no server."""

    examples = (
        "ketrag graph Fram",
        "ketrag graph --document docs/intro.md",
        "ketrag graph Fram --graph walk --html fram.html",
    )
    name: str | None = argument("NAME", "name of an entity or another node")
    document: str | None = option(
        "ID", "document of the citation graph, by id or title (same as ID --kind document)"
    )
    kind: str | None = option("KIND", "graph to search if several have the name: entity, concept, ...")
    html: str | None = option("FILE", "draw the graph into FILE, a page that loads nothing")
    graph: str | None = option(
        "GRAPH", "graph to draw: walk, skeleton, ... (default: the first in the index)"
    )
    limit: int | None = option("N", f"maximum number of nodes to draw (default: {_LIMIT})")
    filter = settings(
        "filter", about=f"show only what is in documents whose metadata match, such as {FILTER}"
    )
    allow = settings("allow")

    def run(self) -> int:
        """Print the node, or draw the graph."""
        name, kind = self.name, self.kind
        if self.document is not None:
            if name is not None or kind not in (None, "document"):
                raise ConfigError(
                    "--document ID cannot be combined with NAME or another --kind",
                    hint="leave out NAME and --kind",
                )
            name, kind = self.document, "document"
        html = output.page_path(self.html)
        if html is not None:
            return self._draw(html, name)
        if self.graph is not None or self.limit is not None:
            raise ConfigError("--graph and --limit have no effect without --html", hint="add --html FILE")
        if name is None:
            raise ConfigError("no node was named", hint="ketrag graph NAME, or ketrag graph --document ID")
        with options.open_index(self) as index:
            if kind == "document" and (command := index.inspect.missing_graphs().get(_CITATIONS)) is not None:
                raise ModeUnavailable("this index has no citation graph", hint=f"`{command}` adds it")
            found = index.inspect.node(name, kind, filter=index.inspect.filter)
        if self.json:
            output.write_json(found.to_json())
        else:
            output.write("\n".join(inline(line) for line in found.lines()))
        return 0

    def _draw(self, file: Path, name: str | None) -> int:
        """Write the page of `--html`; with --json, also print the data of the drawing."""
        from ketrag_fast.page.graph_file import page

        with options.open_index(self) as index:
            names = index.inspect.graphs()
            if not names:
                raise ModeUnavailable("this index has no graph", hint="ketrag index --modes auto")
            graph = self.graph or (_CITATIONS if self.document is not None else names[0])
            limit = _LIMIT if self.limit is None else self.limit
            view = index.inspect.graph(graph, around=name, limit=limit, filter=index.inspect.filter)
        title = f"graph {graph}" if name is None else f"graph {graph} around {name}"
        output.write_page(file, page(view, title))
        if self.json:
            output.write_json(view.to_json())
        elif not self.quiet:
            nodes = f"{len(view.nodes):,} of {view.total_nodes:,} nodes"
            output.say(f"{file}: {nodes}, {len(view.edges):,} of {view.total_edges:,} edges")
        return 0
