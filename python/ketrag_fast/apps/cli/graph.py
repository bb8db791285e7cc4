"""`ketrag graph NAME`: print a node with its neighbours, or draw them into an HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError, ModeUnavailable

_LIMIT = 300
_CITATIONS = "citations"
"""The graph of `--document`."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "graph",
        parents=[shared],
        description="Show the neighbourhood of a node in the graphs of the index: an entity, a concept or "
        "a document. Names are matched without case; similar names are suggested. With --html, draw the "
        "graph around NAME, or without NAME the whole graph or its best-linked part, into one file that "
        "needs no server.",
        examples=(
            "ketrag graph Fram",
            "ketrag graph --document docs/intro.md",
            "ketrag graph Fram --graph walk --html fram.html",
        ),
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of an entity or another node")
    parser.add_argument(
        "--document",
        metavar="ID",
        help="document of the citation graph, by id or title (same as ID --kind document)",
    )
    parser.add_argument(
        "--kind", metavar="KIND", help="graph to search if several have the name: entity, concept, ..."
    )
    parser.add_argument("--html", metavar="FILE", help="draw the graph into FILE, a page that loads nothing")
    parser.add_argument(
        "--graph",
        metavar="GRAPH",
        help="graph to draw: walk, skeleton, ... (default: the first in the index)",
    )
    parser.add_argument(
        "--limit", metavar="N", type=int, help=f"maximum number of nodes to draw (default: {_LIMIT})"
    )
    options.setting(
        parser,
        "filter",
        about=f"show only what is in documents whose metadata match, such as {options.FILTER}",
    )
    options.setting(parser, "allow")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    name, kind = args.name, args.kind
    if args.document is not None:
        if name is not None or kind not in (None, "document"):
            raise ConfigError(
                "--document ID cannot be combined with NAME or another --kind",
                hint="leave out NAME and --kind",
            )
        name, kind = args.document, "document"
    if args.html is not None:
        return _draw(args, name)
    if args.graph is not None or args.limit is not None:
        raise ConfigError("--graph and --limit have no effect without --html", hint="add --html FILE")
    if name is None:
        raise ConfigError("no node was named", hint="ketrag graph NAME, or ketrag graph --document ID")
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        if kind == "document" and (command := index.inspect.missing_graphs().get(_CITATIONS)) is not None:
            raise ModeUnavailable("this index has no citation graph", hint=f"`{command}` adds it")
        found = index.inspect.node(name, kind, filter=index.inspect.filter)
    if args.json:
        output.write_json(found.to_json())
    else:
        output.write("\n".join(inline(line) for line in found.lines()))
    return 0


def _draw(args: argparse.Namespace, name: str | None) -> int:
    """Write the page of `--html`; with --json, also print the data of the drawing."""
    from ketrag_fast.index import Index
    from ketrag_fast.page.assets import graph_page

    file = Path(args.html)
    output.require_writable(file)
    path, _ = options.index_path(args)
    with Index.open(path, settings=options.query_settings_of(args)) as index:
        names = index.inspect.graphs()
        if not names:
            raise ModeUnavailable("this index has no graph", hint="ketrag index --modes auto")
        graph = args.graph or (_CITATIONS if args.document is not None else names[0])
        limit = _LIMIT if args.limit is None else args.limit
        view = index.inspect.graph(graph, around=name, limit=limit, filter=index.inspect.filter)
    title = f"graph {graph}" if name is None else f"graph {graph} around {name}"
    output.write_page(file, graph_page(view, title))
    if args.json:
        output.write_json(view.to_json())
    elif not args.quiet:
        nodes = f"{len(view.nodes):,} of {view.total_nodes:,} nodes"
        output.say(f"{file}: {nodes}, {len(view.edges):,} of {view.total_edges:,} edges")
    return 0
