"""`ketrag bundle -o FILE`: an index as one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "bundle",
        parents=[shared],
        description="Writes an index into one file, to be carried elsewhere: `ketrag unbundle FILE -i DIR` "
        "makes it an index again and checks every byte.",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file that is written")
    parser.add_argument("--replace", action="store_true", help="write over a file that is there")
    parser.add_argument(
        "--with-model",
        action="store_true",
        help="the embedding model goes along: its files, which the index finds in its own folder there",
    )
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    size = Index.bundle(path, args.output, replace=args.replace, with_model=args.with_model)
    if args.json:
        output.write_json(
            {"schema": "ketrag/bundle/1", "index": str(path), "file": str(Path(args.output)), "bytes": size}
        )
    else:
        output.write(f"{inline(args.output)}: {output.size_text(size)}")
    return 0
