"""`ketrag upgrade`: upgrade an index of the previous format."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import index, options


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "upgrade",
        parents=[shared],
        description="Upgrade an index of the previous format. Texts, words and links stay; vectors are "
        "computed again from the texts of the index. No source is read and no LLM is called. Until the "
        "command ends, queries do without vectors.",
        examples=(
            "ketrag upgrade -i docs-index",
            "ketrag upgrade -i docs-index --embedder native:models/all-MiniLM-L6-v2",
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

    with Index.upgrade(path, settings=settings, progress=options.progress(args)) as opened:
        report = index.report_of(opened)
    index.print_report(args, path, report)
    return 0
