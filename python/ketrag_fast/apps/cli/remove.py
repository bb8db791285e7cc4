"""`ketrag remove ID...`: documents go, and stay away although their source has them."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import changes
from ketrag_fast.errors import ConfigError


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "remove",
        parents=[shared],
        description="Removes documents from an index. No source is read and no model is asked. They stay "
        "away although their source has them, until `ketrag add` names it, or the document's own file.",
        epilog="ids are those that `ketrag documents` lists. In a pattern * stands for any characters, also "
        "for /; ? for one; [abc] for one of these. Quote it, so that the shell leaves it alone.",
    )
    parser.add_argument("ids", nargs="*", metavar="ID|GLOB", help="a document's id, or a pattern of ids")
    parser.add_argument(
        "--filter",
        dest="where",
        metavar="TEXT",
        help="documents whose metadata fits: 'year<1990'",
    )
    parser.add_argument(
        "--purge",
        action="store_true",
        help="leave no text, vector, reply or id of them in any file of the index; what earlier models left "
        "and the reports of earlier builds go with it",
    )
    changes.declare(parser)
    parser.set_defaults(run=run, go_on=changes.GO_ON)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    if not args.ids and args.where is None and not args.purge:
        raise ConfigError("nothing was named", hint="ketrag remove ID..., or --filter 'year<1990'")
    return changes.run(args, remove=args.ids, where=args.where, purge=args.purge)
