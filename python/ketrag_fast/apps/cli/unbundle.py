"""`ketrag unbundle FILE`: an index from one file."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "unbundle",
        parents=[shared],
        description="Makes an index of a file that `ketrag bundle` wrote, in a new or empty folder, and "
        "checks every byte. An index with a model's vectors needs that model for questions: it is in the "
        "file where `ketrag bundle --with-model` wrote it, else --embedder says where it is.",
    )
    parser.add_argument("file", metavar="FILE", help="what `ketrag bundle` wrote")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
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
    output.write(f"{inline(path)} is ready; `ketrag stats -i {inline(path)}` says what it holds")
    for endpoint in endpoints:
        output.write(f"it names an endpoint as its {endpoint.setting}: {inline(endpoint.sentence())}")
    if any(not endpoint.trusted for endpoint in endpoints):
        output.write(f"`ketrag trust --help` explains how to confirm it for {inline(path)}")
    return 0
