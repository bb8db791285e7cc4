"""`ketrag compact`: write the changes of a large index into its files."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import index, options


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compact",
        parents=[shared],
        description="Write the small changes that a large index stores next to its files into the files. "
        "They are then those of a build from scratch. No source is read and no model is called; queries use "
        "the old generation until the new one is published.",
        examples=(
            "ketrag compact",
            "ketrag compact -i docs-index --threads 1",
            "ketrag compact --json",
        ),
    )
    options.topic(parser, "running", "running")
    parser.set_defaults(run=run, go_on="finished work is kept: run the same command again to continue")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.index import Index

    path, _ = options.index_path(args)
    with Index.open(path, settings=options.build_settings_of(args)) as opened:
        report = opened.update(fold=True, progress=options.progress(args))
    index.print_report(args, path, report)
    return 0
