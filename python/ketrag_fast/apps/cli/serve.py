"""`ketrag serve`: serve indexes over HTTP."""

from __future__ import annotations

import argparse
import logging
import os
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import BackendMissing, ConfigError

_PORT = 8765
_MOST_PORT = 65_535
_MOST_WORKERS = 256


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
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
    parser.add_argument(
        "-i",
        "--index",
        action="append",
        metavar="[NAME=]DIR",
        help="index folder and its name; repeatable (default: $KETRAG_INDEX, else ./.ketrag)",
    )
    group = parser.add_argument_group("service")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    group.add_argument(
        "--port", type=int, default=_PORT, metavar="N", help=f"port; 0: any free one (default {_PORT})"
    )
    group.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes; they share the index files (default 1)",
    )
    group.add_argument(
        "--token-file", metavar="FILE", help="file with the token that clients send (default: $KETRAG_TOKEN)"
    )
    group.add_argument("--allow-write", action="store_true", help="let clients add documents")
    mark_rare(
        group.add_argument(
            "--share", action="store_true", help="let services of other machines copy and search the indexes"
        ),
        group.add_argument(
            "--allow-host",
            action="append",
            default=[],
            metavar="NAME",
            help="host name that clients use for this server; repeatable",
        ),
        group.add_argument(
            "--allow-origin",
            action="append",
            default=[],
            metavar="URL",
            help="web site whose pages may use this server; repeatable",
        ),
    )
    bounds = parser.add_argument_group("limits of each worker")
    for flag, kind, text in _BOUNDS:
        mark_rare(bounds.add_argument(flag, type=kind, metavar="N" if kind is int else "X", help=text))
    options.answering(parser)
    options.topic(parser, "retrieval", "query", shown=("mode", "budget", "filter", "allow"))
    models = parser.add_argument_group("embedding model")
    options.setting(models, "embedder", rare=True)
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


_BOUNDS: tuple[tuple[str, type, str], ...] = (
    ("--concurrency", int, "queries run in parallel (default: number of CPU cores)"),
    ("--queue", int, "queries that may wait; more get status 429 (default 512)"),
    ("--answer-queue", int, "LLM answers that may wait (default 8)"),
    ("--batch", int, "queries run in one batch (default 8, with an embedding model 32)"),
    ("--max-body", int, "maximum bytes of a request (default 1,000,000)"),
    ("--max-questions", int, "maximum queries in one request (default 256)"),
    ("--max-budget", int, "maximum context budget of a request in tokens (default 100,000)"),
    ("--max-connections", int, "maximum open connections (default 1,024)"),
    ("--request-seconds", float, "time limit of retrieval (default 30)"),
    ("--answer-seconds", float, "time limit of an answer (default 300)"),
    ("--read-seconds", float, "time limit for receiving a request (default 10)"),
    ("--cache-mb", float, "size of the reply cache in MB (default 64)"),
)
_FIELDS = {
    "concurrency": "concurrency",
    "queue": "queue",
    "answer_queue": "answers",
    "batch": "batch",
    "max_body": "body",
    "max_questions": "questions",
    "max_budget": "budget",
    "max_connections": "connections",
    "request_seconds": "deadline",
    "answer_seconds": "answer_seconds",
    "read_seconds": "read_seconds",
}


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    try:
        from ketrag_fast.apps.server.options import ServerOptions, parse_indexes
        from ketrag_fast.apps.server.running import listen_sockets, serve, token_of
        from ketrag_fast.apps.server.supervisor import Supervisor
    except ImportError as error:
        raise BackendMissing(
            f"ketrag serve needs the package {error.name}, which is not installed",
            hint="pip install 'ketrag-fast[server]'",
        ) from None
    if not 0 <= args.port <= _MOST_PORT or not 1 <= args.workers <= _MOST_WORKERS:
        raise ConfigError(
            f"--port must be from 0 to {_MOST_PORT:,} and --workers from 1 to {_MOST_WORKERS}, "
            f"got {args.port} and {args.workers}"
        )
    if args.workers > 1 and os.name == "nt":
        raise ConfigError(
            f"--workers {args.workers}: Windows supports one worker only", hint="leave --workers out"
        )
    bounds: dict[str, Any] = {}
    for flag, name in _FIELDS.items():
        value = getattr(args, flag)
        if value is not None:
            if value <= 0:
                raise ConfigError(f"--{flag.replace('_', '-')} must be above 0, got {value:g}")
            bounds[name] = value
    if args.cache_mb is not None:
        bounds["cache"] = max(0, int(1e6 * args.cache_mb))
    given = ServerOptions(
        indexes=parse_indexes(args.index or [os.environ.get("KETRAG_INDEX") or ".ketrag"]),
        settings=options.query_settings_of(args).given,
        host=args.host,
        port=args.port,
        workers=args.workers,
        writable=args.allow_write,
        share=args.share,
        hosts=tuple(args.allow_host),
        origins=tuple(args.allow_origin),
        **bounds,
    )
    options.require_file("--token-file", args.token_file, hint="for example: openssl rand -hex 32 > token")
    token = token_of(args.token_file, args.host)
    logging.basicConfig(format="ketrag: %(message)s", level=logging.INFO if args.verbose else logging.WARNING)
    sockets = listen_sockets(given.host, given.port, given.workers)
    port = sockets[0].getsockname()[1]
    host = f"[{given.host}]" if ":" in given.host else given.host

    def started() -> None:
        if not args.quiet:
            names = ", ".join(inline(name) for name in given.indexes)
            output.say(f"serving {names} at http://{host}:{port}")

    if given.workers == 1:
        serve(given, token, sockets[0], on_start=started)
    else:
        Supervisor(given, token, sockets, on_start=started).run()
    return 0
