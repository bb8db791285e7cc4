"""`ketrag reembed`: replace the vectors of an index."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import index, options


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "reembed",
        parents=[shared],
        description="Compute all vectors again, with another model or the same one, and publish them at "
        "once when they are complete; queries use the old ones until then. Documents are read "
        "from the index, not from their sources. Run it again after an interruption to "
        "continue.",
        examples=(
            "ketrag reembed --embedder native:all-MiniLM-L6-v2",
            "ketrag reembed --embedder openai:MODEL@http://127.0.0.1:8080/v1",
            "ketrag reembed --limit-seconds 3600",
        ),
    )
    group = parser.add_argument_group("what to build")
    options.setting(group, "embedder", "limit_seconds")
    options.model(parser, shown=("precision", "device", "limit_usd"))
    parser.set_defaults(run=run, go_on="embedded texts are kept: run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    settings = options.query_settings_of(args)
    from ketrag_fast.index import Index

    with Index.reembed(path, settings=settings, progress=options.progress(args)) as opened:
        report = index.report_of(opened)
    index.print_report(args, path, report)
    return 0
