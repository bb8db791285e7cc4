"""`ketrag graph NAME`: show a node of the graphs: an entity, a concept, a document."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "graph",
        parents=[shared],
        description="Show the neighbourhood of a node in the graphs of the index: an entity, a concept or "
        "a document. Names are matched without case; similar names are suggested.",
        examples=(
            "ketrag graph Fram",
            "ketrag graph Fram --kind concept --json",
            "ketrag graph --document docs/intro.md",
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
    options.setting(parser, "filter", "allow")
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
    if name is None:
        raise ConfigError("no node was named", hint="ketrag graph NAME, or ketrag graph --document ID")
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        found = index.inspect.node(name, kind, filter=index.inspect.filter)
    if args.json:
        output.write_json(found.to_json())
    else:
        output.write("\n".join(inline(line) for line in found.lines()))
    return 0
