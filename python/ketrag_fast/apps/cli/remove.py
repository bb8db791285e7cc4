"""`ketrag remove ID...`: remove documents and keep them out although their source has them."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import changes
from ketrag_fast.errors import ConfigError


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "remove",
        parents=[shared],
        description="Remove documents from an index. No source is read and no model is called. They stay "
        "removed even if their source still has them, until `ketrag add` names the source or their "
        "file.",
        epilog="In a pattern, * matches any characters (also /), ? one character, [abc] one of these.\n"
        "Quote patterns, so that the shell does not expand them.",
        examples=(
            "ketrag remove old.md 'drafts/*'",
            "ketrag remove --filter 'year<1990' --dry-run",
            "ketrag remove --purge secret.md",
        ),
    )
    parser.add_argument("ids", nargs="*", metavar="ID|GLOB", help="document id, or pattern of ids")
    parser.add_argument(
        "--filter",
        dest="where",
        metavar="CONDITION",
        help="documents whose metadata match, such as 'year<1990'",
    )
    parser.add_argument(
        "--purge",
        action="store_true",
        help="erase their text, vectors, replies and ids from all files of the index",
    )
    changes.declare(parser)
    parser.set_defaults(run=run, go_on=changes.GO_ON)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if not args.ids and args.where is None and not args.purge:
        raise ConfigError("no document was named", hint="ketrag remove ID..., or --filter 'year<1990'")
    return changes.run(args, remove=args.ids, where=args.where, purge=args.purge)
