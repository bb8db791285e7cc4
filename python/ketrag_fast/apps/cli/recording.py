"""`ketrag recording`: what was extracted elsewhere, as a recording for `--llm replay:FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import output


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "recording",
        parents=[shared],
        description="Writes a recording, for `ketrag index --llm replay:FILE`, of another tool's extraction.",
    )
    parser.add_argument(
        "action", choices=("from-graphrag",), help="from graphrag's tables (*.parquet), else from its cache"
    )
    parser.add_argument("folder", metavar="FOLDER", help="graphrag's root, output or cache folder")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the recording (.jsonl)")
    parser.add_argument("--replace", action="store_true", help="write over an existing file")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from ketrag_fast.models.extraction.graphrag import record_graphrag

    found = record_graphrag(Path(args.folder), Path(args.output), replace=args.replace)
    if args.json:
        output.write_json({**found.to_json(), "file": args.output})
    else:
        output.write(
            f"{args.output}: {found.passages:,} passages of graphrag's {found.origin}, "
            f"{found.entities:,} entities, {found.relations:,} relations "
            f"({found.dropped:,} records dropped, {found.skipped:,} replies without their passage)"
        )
    return output.PARTIAL if found.skipped else 0
