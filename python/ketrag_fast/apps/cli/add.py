"""`ketrag add SOURCE...`: read these sources only, and restore documents removed from them."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import changes, options


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "add",
        parents=[shared],
        description="Add files, folders, globs or data sets to an index, or read them again. Other "
        "sources are not read. Removed documents come back with their source.",
        examples=(
            "ketrag add notes/new.md",
            "ketrag add 'reports/2024-*.pdf' --dry-run",
            "ketrag add notes/ --llm llama-cpp:model.gguf",
        ),
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="file, folder, glob or .jsonl data set")
    changes.declare(parser)
    options.topic(
        parser,
        "extraction by a language model (without --llm, new chunks stay pending)",
        "reading",
        shown=("llm",),
    )
    parser.set_defaults(run=run, go_on=changes.GO_ON)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return changes.run(args, sources=args.sources)
