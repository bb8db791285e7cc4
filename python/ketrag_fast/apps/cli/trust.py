"""`ketrag trust`: confirm the endpoints that an index names."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "trust",
        parents=[shared],
        description="List the endpoints that an index names, and confirm one with --endpoint: queries, "
        "and the API key if one is set, may then be sent there. Nothing is sent to an "
        "endpoint that only the index names. The confirmation is stored for this user, folder "
        "and index, not in the index.",
        examples=(
            "ketrag trust -i their-index",
            "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1",
            "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1 --forget",
        ),
    )
    parser.add_argument("--endpoint", metavar="URL", help="address to confirm")
    parser.add_argument("--forget", action="store_true", help="withdraw the confirmation of --endpoint")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.forget and args.endpoint is None:
        raise ConfigError("--forget needs an address", hint="name it with --endpoint URL")
    path, _ = options.index_path(args)
    from ketrag_fast.index.endpoints import list_endpoints, trust_endpoint

    if args.endpoint is not None:
        trust_endpoint(path, args.endpoint, confirmed=not args.forget)
    endpoints = list_endpoints(path)
    if args.json:
        rows = [endpoint.to_json() for endpoint in endpoints]
        output.write_json({"schema": "ketrag/trust/1", "index": str(path), "endpoints": rows})
        return 0
    for endpoint in endpoints:
        output.write(f"{inline(endpoint.setting)}: {inline(endpoint.sentence())}")
    if not endpoints:
        output.write(f"{inline(path)} names no endpoint")
    return 0
