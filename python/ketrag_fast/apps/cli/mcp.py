"""`ketrag mcp`: offer indexes to an assistant."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from typing import Any

from ketrag_fast.apps.cli import options, output, serve
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.errors import BackendMissing, ConfigError

_PORT = 8766


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "mcp",
        parents=[shared],
        conflict_handler="resolve",
        description="Offer indexes to an assistant by the Model Context Protocol: search, ask, "
        "read_passage, entity, list_documents. Over standard input and output, or over HTTP "
        "with --http.",
        examples=(
            "ketrag mcp -i docs-index",
            "ketrag mcp -i notes=./notes -i laws=./laws --llm llama-cpp:model.gguf",
            "ketrag mcp -i docs-index --http --port 8766",
        ),
    )
    serve.add_indexes(parser)
    group = parser.add_argument_group("HTTP")
    group.add_argument("--http", action="store_true", help="listen on a port instead of standard input")
    serve.add_address(group, _PORT)
    group.add_argument("--token-file", **serve.TOKEN_FILE)
    mark_rare(group.add_argument("--allow-host", **serve.ALLOW_HOST))
    serve.add_models(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command until its client goes away, or until Ctrl-C, which is how it is ended."""
    try:
        return _serve(args)
    except KeyboardInterrupt:
        return 0


def _end(*_: object) -> None:
    """End the process: the thread that waits for standard input cannot be interrupted."""
    os._exit(0)


def _serve(args: argparse.Namespace) -> int:
    try:
        from ketrag_fast.apps.server.mcp_tools import create_mcp_app, over_pipes
        from ketrag_fast.apps.server.options import ServerOptions, parse_indexes
        from ketrag_fast.apps.server.running import serve as run_service
    except ImportError as error:
        raise BackendMissing(
            f"ketrag mcp needs the package {error.name}, which is not installed",
            hint="pip install 'ketrag-fast[server]'",
        ) from None
    if not 0 <= args.port <= serve.MOST_PORT:
        raise ConfigError(f"--port must be from 0 to {serve.MOST_PORT:,}, got {args.port}")
    given = ServerOptions(
        indexes=parse_indexes(options.served_indexes(args)),
        settings=options.query_settings_of(args).given,
        host=args.host,
        port=args.port,
        hosts=tuple(args.allow_host),
        front=False,
    )
    logging.basicConfig(format="ketrag: %(message)s", level=logging.WARNING)
    if not args.http:
        before = signal.signal(signal.SIGINT, _end)
        try:
            over_pipes(given)
        finally:
            signal.signal(signal.SIGINT, before)
        return 0
    token, sockets, address = serve.open_socket(args, given)

    def started() -> None:
        if not args.quiet:
            output.say(f"serving {', '.join(given.indexes)} at {address}/mcp")

    run_service(given, token, sockets[0], on_start=started, make=create_mcp_app)
    return 0
