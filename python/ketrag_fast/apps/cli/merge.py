"""`ketrag merge DIR...`: merge several indexes into one."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import index, options, output


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "merge",
        parents=[shared],
        description="Merge several indexes into one (-i OUT), byte for byte the index of one build over "
        "all their documents. Nothing is read, embedded or extracted again. The indexes must "
        "have the same settings and models.",
        examples=(
            "ketrag merge part1 part2 part3 -i whole",
            "ketrag merge north south -i whole --prefer last",
            "ketrag index corpus/ -i part1 --shard 1/3",
        ),
    )
    parser.add_argument("parts", nargs="+", metavar="DIR", help="index folder")
    parser.add_argument(
        "--prefer",
        choices=("first", "last"),
        help="index that takes precedence if two have different documents with one id (default: an error)",
    )
    group = parser.add_argument_group("embedding model")
    options.setting(group, "embedder")
    options.topic(parser, "running", "running")
    options.model(parser)
    parser.set_defaults(run=run, go_on="finished work is kept: run the same command again to continue")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.merge(
        args.parts,
        path,
        prefer=args.prefer,
        settings=options.build_settings_of(args),
        progress=options.progress(args),
    ) as merged:
        report = index.report_of(merged)
    args.code = output.PARTIAL if report.failures else 0
    index.print_report(args, path, report, parts=list(args.parts))
    return int(args.code)
