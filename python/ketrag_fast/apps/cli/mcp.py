"""`ketrag mcp`: offer indexes to an assistant."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.errors import BackendMissing, ConfigError

_PORT = 8766
_MOST_PORT = 65_535


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
    parser.add_argument(
        "-i",
        "--index",
        action="append",
        metavar="[NAME=]DIR",
        help="index folder and its name; repeatable (default: $KETRAG_INDEX, else ./.ketrag)",
    )
    group = parser.add_argument_group("HTTP")
    group.add_argument("--http", action="store_true", help="listen on a port instead of standard input")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    group.add_argument(
        "--port", type=int, default=_PORT, metavar="N", help=f"port; 0: any free one (default {_PORT})"
    )
    group.add_argument(
        "--token-file", metavar="FILE", help="file with the token that clients send (default: $KETRAG_TOKEN)"
    )
    mark_rare(
        group.add_argument(
            "--allow-host",
            action="append",
            default=[],
            metavar="NAME",
            help="host name that clients use for this server; repeatable",
        )
    )
    options.answering(parser)
    options.topic(parser, "retrieval", "query", shown=("mode", "budget", "filter", "allow"))
    models = parser.add_argument_group("embedding model")
    options.setting(models, "embedder", rare=True)
    options.model(parser)
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
        from ketrag_fast.apps.server.running import listen_sockets, serve, token_of
    except ImportError as error:
        raise BackendMissing(
            f"ketrag mcp needs the package {error.name}, which is not installed",
            hint="pip install 'ketrag-fast[server]'",
        ) from None
    if not 0 <= args.port <= _MOST_PORT:
        raise ConfigError(f"--port must be from 0 to {_MOST_PORT:,}, got {args.port}")
    given = ServerOptions(
        indexes=parse_indexes(args.index or [os.environ.get("KETRAG_INDEX") or ".ketrag"]),
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
    options.require_file("--token-file", args.token_file, hint="for example: openssl rand -hex 32 > token")
    token = token_of(args.token_file, args.host)
    (listening,) = listen_sockets(given.host, given.port, 1)
    port = listening.getsockname()[1]
    host = f"[{given.host}]" if ":" in given.host else given.host

    def started() -> None:
        if not args.quiet:
            output.say(f"serving {', '.join(given.indexes)} at http://{host}:{port}/mcp")

    serve(given, token, listening, on_start=started, make=create_mcp_app)
    return 0
