"""`ketrag add SOURCE...`: reads these sources alone, and brings back what was removed of them."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import changes, options


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "add",
        parents=[shared],
        description="Adds files, folders, globs or data sets to an index that is there, or reads them again; "
        "the other sources are left as they are. Documents that were removed come back with their source.",
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="file, folder, glob or data set")
    changes.declare(parser)
    options.reading(
        parser,
        "the skeleton: what reads the core chunks",
        "Without --llm no model is asked: chunks that it has not read are pending.",
    )
    parser.set_defaults(run=run, go_on=changes.GO_ON)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    return changes.run(args, sources=args.sources)
