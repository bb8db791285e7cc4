"""`ketrag unbundle FILE`: restore an index from one file."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
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
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
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
