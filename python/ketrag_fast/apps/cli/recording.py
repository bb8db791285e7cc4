"""`ketrag recording`: convert the extraction of another tool for `--llm replay:FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import output


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "recording",
        parents=[shared],
        description="Convert the extraction of another tool into a recording for `ketrag index --llm "
        "replay:FILE`.",
        examples=(
            "ketrag recording from-graphrag graphrag-root --output extraction.jsonl",
            "ketrag index docs/ --llm replay:extraction.jsonl",
            "ketrag recording from-graphrag graphrag-root --output extraction.jsonl --replace",
        ),
    )
    parser.add_argument("action", choices=("from-graphrag",), help="its tables (*.parquet), else its cache")
    parser.add_argument("folder", metavar="FOLDER", help="root, output or cache folder of graphrag")
    parser.add_argument("--output", metavar="FILE", required=True, help="recording to write (.jsonl)")
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.models.extraction.graphrag import record_graphrag

    found = record_graphrag(Path(args.folder), Path(args.output), replace=args.replace)
    args.code = output.PARTIAL if found.skipped else 0
    if args.json:
        output.write_json({**found.to_json(), "file": args.output})
    else:
        output.write(
            f"{args.output}: {found.passages:,} passages of graphrag's {found.origin}, "
            f"{found.entities:,} entities, {found.relations:,} relations "
            f"({found.dropped:,} records dropped, {found.skipped:,} replies without their passage)"
        )
    return int(args.code)
