"""`ketrag bundle FILE`: write an index into one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
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


def declare_unbundle(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "unbundle",
        parents=[shared],
        description="Restore an index from a file that `ketrag bundle` wrote, into a new or empty folder, "
        "and verify every byte. Queries need the embedding model of the index: it is in the "
        "file if `ketrag bundle --with-model` wrote it; otherwise name it with --embedder.",
        examples=(
            "ketrag unbundle notes.bundle -i notes-index",
            "ketrag unbundle notes.bundle -i notes-index --json",
            "ketrag bundle notes.bundle --with-model",
        ),
    )
    parser.add_argument("file", metavar="FILE", help="file written by `ketrag bundle`")
    parser.set_defaults(run=_run_unbundle, go_on="run the same command again")


def _run_unbundle(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index
    from ketrag_fast.index.endpoints import list_endpoints

    settings = options.query_settings_of(args)
    Index.unbundle(args.file, path)
    endpoints = list_endpoints(path, settings=settings)
    if args.json:
        rows = [endpoint.to_json() for endpoint in endpoints]
        about = {"schema": "ketrag/unbundle/1", "index": str(path), "file": str(args.file)}
        output.write_json({**about, "endpoints": rows})
        return 0
    output.write(f"{inline(path)} is ready; `ketrag stats -i {inline(path)}` prints what it contains")
    for endpoint in endpoints:
        output.write(f"it names an endpoint as its {endpoint.setting}: {inline(endpoint.sentence())}")
    if any(not endpoint.trusted for endpoint in endpoints):
        output.write(f"`ketrag trust --help` explains how to confirm it for {inline(path)}")
    return 0
