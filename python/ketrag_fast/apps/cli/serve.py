"""`ketrag serve`: serve indexes over HTTP."""

from __future__ import annotations

import argparse
import logging
import os
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import BackendMissing, ConfigError

if TYPE_CHECKING:
    from socket import socket

    from ketrag_fast.apps.server.options import ServerOptions

_PORT = 8765
MOST_PORT = 65_535
_MOST_WORKERS = 256


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "serve",
        parents=[shared],
        conflict_handler="resolve",
        description="Serve indexes over HTTP: passages, answers, graphs, the OpenAI protocol and a web "
        "page. Only this machine can connect unless --host is given, which requires a token.",
        examples=(
            "ketrag serve -i docs-index",
            "ketrag serve -i notes=./notes -i laws=./laws --llm llama-cpp:model.gguf --workers 2",
            "ketrag serve -i docs-index --host 0.0.0.0 --token-file token",
        ),
    )
    add_indexes(parser)
    group = parser.add_argument_group("service")
    add_address(group, _PORT)
    group.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes; they share the index files (default 1)",
    )
    group.add_argument("--token-file", **TOKEN_FILE)
    group.add_argument("--allow-write", action="store_true", help="let clients add documents")
    mark_rare(
        group.add_argument("--allow-host", **ALLOW_HOST),
        group.add_argument(
            "--allow-origin",
            action="append",
            default=[],
            metavar="URL",
            help="web site whose pages may use this server; repeatable",
        ),
    )
    bounds = parser.add_argument_group("limits of each worker")
    for flag, (_, kind, text) in _BOUNDS.items():
        mark_rare(bounds.add_argument(flag, type=kind, metavar="N" if kind is int else "X", help=text))
    add_models(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def add_indexes(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the indexes to serve."""
    parser.add_argument(
        "-i",
        "--index",
        action="append",
        metavar="[NAME=]DIR",
        help="index folder and its name; repeatable (default: $KETRAG_INDEX, ./.ketrag, else all "
        "collections)",
    )


def add_address(group: Any, port: int) -> None:
    """Add the options for host and port."""
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    text = f"port; 0: any free one (default {port})"
    group.add_argument("--port", type=int, default=port, metavar="N", help=text)


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the settings of answers, retrieval and the embedding model."""
    options.answering(parser)
    options.topic(parser, "retrieval", "query", shown=("mode", "budget", "filter", "allow"))
    options.setting(parser.add_argument_group("embedding model"), "embedder", rare=True)
    options.model(parser)


def open_socket(args: argparse.Namespace, given: ServerOptions) -> tuple[str | None, list[socket], str]:
    """Return the token, the listening sockets, and the URL of a service."""
    from ketrag_fast.apps.server.running import listen_sockets, token_of

    options.require_file("--token-file", args.token_file, hint="for example: openssl rand -hex 32 > token")
    token = token_of(args.token_file, args.host)
    sockets = listen_sockets(given.host, given.port, given.workers)
    host = f"[{given.host}]" if ":" in given.host else given.host
    return token, sockets, f"http://{host}:{sockets[0].getsockname()[1]}"


TOKEN_FILE: dict[str, Any] = {
    "metavar": "FILE",
    "help": "file with the token that clients send (default: $KETRAG_TOKEN)",
}
ALLOW_HOST: dict[str, Any] = {
    "action": "append",
    "default": [],
    "metavar": "NAME",
    "help": "host name that clients use for this server; repeatable",
}
_BOUNDS: dict[str, tuple[str, type, str]] = {
    "--concurrency": ("concurrency", int, "queries run in parallel (default: number of CPU cores)"),
    "--queue": ("queue", int, "queries that may wait; more get status 429 (default 512)"),
    "--answer-queue": ("answers", int, "LLM answers that may wait (default 8)"),
    "--batch": ("batch", int, "queries run in one batch (default 8, with an embedding model 32)"),
    "--max-body": ("body", int, "maximum bytes of a request (default 1,000,000)"),
    "--max-questions": ("questions", int, "maximum queries in one request (default 256)"),
    "--max-budget": ("budget", int, "maximum context budget of a request in tokens (default 100,000)"),
    "--max-connections": ("connections", int, "maximum open connections (default 1,024)"),
    "--request-seconds": ("deadline", float, "time limit of retrieval (default 30)"),
    "--answer-seconds": ("answer_seconds", float, "time limit of an answer (default 300)"),
    "--read-seconds": ("read_seconds", float, "time limit for receiving a request (default 10)"),
    "--cache-mb": ("cache", float, "size of the reply cache in MB (default 64)"),
}
"""Options that set limits: field of `ServerOptions`, type and help."""


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    try:
        from ketrag_fast.apps.server.options import ServerOptions, parse_indexes
        from ketrag_fast.apps.server.running import serve
        from ketrag_fast.apps.server.workers import Supervisor
    except ImportError as error:
        raise BackendMissing(
            f"ketrag serve needs the package {error.name}, which is not installed",
            hint="pip install 'ketrag-fast[server]'",
        ) from None
    if not 0 <= args.port <= MOST_PORT or not 1 <= args.workers <= _MOST_WORKERS:
        raise ConfigError(
            f"--port must be from 0 to {MOST_PORT:,} and --workers from 1 to {_MOST_WORKERS}, "
            f"got {args.port} and {args.workers}"
        )
    if args.workers > 1 and os.name == "nt":
        raise ConfigError(
            f"--workers {args.workers}: Windows supports one worker only", hint="leave --workers out"
        )
    bounds: dict[str, Any] = {}
    for flag, (name, _, _) in _BOUNDS.items():
        value = getattr(args, flag[2:].replace("-", "_"))
        if value is not None and name == "cache":
            bounds[name] = max(0, int(1e6 * value))
        elif value is not None:
            if value <= 0:
                raise ConfigError(f"{flag} must be above 0, got {value:g}")
            bounds[name] = value
    given = ServerOptions(
        indexes=parse_indexes(options.served_indexes(args)),
        settings=options.query_settings_of(args).given,
        host=args.host,
        port=args.port,
        workers=args.workers,
        writable=args.allow_write,
        hosts=tuple(args.allow_host),
        origins=tuple(args.allow_origin),
        **bounds,
    )
    logging.basicConfig(format="ketrag: %(message)s", level=logging.INFO if args.verbose else logging.WARNING)
    token, sockets, address = open_socket(args, given)

    def started() -> None:
        if not args.quiet:
            names = ", ".join(inline(name) for name in given.indexes)
            output.say(f"serving {names} at {address}")

    if given.workers == 1:
        serve(given, token, sockets[0], on_start=started)
    else:
        Supervisor(given, token, sockets, on_start=started).run()
    return 0
