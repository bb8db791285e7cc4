"""`ketrag reembed`: another embedding model for an index that is there."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import index, options, output


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "reembed",
        parents=[shared],
        description="Makes all vectors anew beside those that the index has, with what depends on them, and "
        "switches at once when they are complete; until then questions are answered from the old ones. "
        "Documents are taken from the index, not from their sources. Run it again after an interruption "
        "and it goes on. Without --embedder the index's own model is used again, if it gives other vectors.",
    )
    options.setting(parser, "embedder")
    options.setting(parser.add_argument_group("how it runs"), "limit_seconds")
    options.model(parser)
    parser.set_defaults(run=run, go_on="what is embedded is kept: run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    path, _ = options.index_path(args)
    settings = options.query_settings_of(args)
    from ketrag_fast.index import Index

    with Index.reembed(path, settings=settings, progress=options.progress(args)) as opened:
        report = index.report_of(opened)
    if args.json:
        output.write_json({**report.to_json(), "index": str(path)})
    else:
        output.write(index.summary(report, str(path)))
    if not args.quiet:
        index.tell(args, report)
    return 0
