"""`ketrag bundle FILE`: write an index into one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bundle",
        parents=[shared],
        description="Write an index into one file, to move it to another machine. `ketrag unbundle` "
        "restores it and verifies every byte.",
        examples=(
            "ketrag bundle notes.bundle -i notes-index",
            "ketrag bundle notes.bundle --with-model",
            "ketrag unbundle notes.bundle -i elsewhere",
        ),
    )
    parser.add_argument("output", metavar="FILE", help="file to write")
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file")
    parser.add_argument("--with-model", action="store_true", help="include the files of the embedding model")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    options.refuse_standard_stream(args.output, "standard output")
    path, _ = options.index_path(args)
    if options.query_settings_of(args, strict=False).allow is not None:
        raise ConfigError(
            "allow is set, but a bundle contains all documents",
            hint="write the permitted ones with `ketrag export jsonl FILE --documents`, or leave allow out "
            "(--config, KETRAG_ALLOW)",
        )
    from ketrag_fast.index import Index

    size = Index.bundle(path, args.output, replace=args.replace, with_model=args.with_model)
    if args.json:
        output.write_json(
            {"schema": "ketrag/bundle/1", "index": str(path), "file": str(Path(args.output)), "bytes": size}
        )
    else:
        output.write(f"{inline(args.output)}: {output.size_text(size)}")
    return 0
