"""`ketrag graph NAME`: what the graphs of an index know under a name: an entity, a concept."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "graph",
        parents=[shared],
        description="Shows what the index's graphs know under a name. Case does not matter; names that are "
        "near a wrong one are listed.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="of an entity, or of what else a graph names")
    parser.add_argument(
        "--document",
        metavar="ID",
        help="a document of the graph of citations, by its id or title: what it cites, what cites it, and "
        "which units are tied (the same as ID --kind document)",
    )
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="where several graphs have the name: entity, concept, ...",
    )
    options.setting(parser, "filter", "allow")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    name, kind = args.name, args.kind
    if args.document is not None:
        if name is not None or kind not in (None, "document"):
            raise ConfigError("--document ID names what is shown", hint="leave out NAME and --kind")
        name, kind = args.document, "document"
    if name is None:
        raise ConfigError("nothing is named", hint="ketrag graph NAME, or ketrag graph --document ID")
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        found = index.inspect.node(name, kind, filter=index.inspect.filter)
    if args.json:
        output.write_json(found.to_json())
    else:
        output.write("\n".join(inline(line) for line in found.lines()))
    return 0
