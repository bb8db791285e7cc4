"""`ketrag serve`: the index as a service."""

from __future__ import annotations

import argparse
import logging
import os
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import BackendMissing, ConfigError

_PORT = 8765
_MOST_PORT = 65_535
_MOST_WORKERS = 256


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "serve",
        parents=[shared],
        conflict_handler="resolve",
        description="Serves indexes over HTTP: passages, answers, graphs, OpenAI's protocol and a page. Only "
        "this machine can reach it unless --host says otherwise, which needs a token.",
    )
    parser.add_argument(
        "-i",
        "--index",
        action="append",
        metavar="[NAME=]DIR",
        help="folder of an index, and the name under which it is served; again for more "
        "(else $KETRAG_INDEX, else ./.ketrag)",
    )
    group = parser.add_argument_group("the service")
    group.add_argument("--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1)")
    group.add_argument(
        "--port", type=int, default=_PORT, metavar="N", help=f"0 for any that is free (default {_PORT})"
    )
    group.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes, which share the mapped files (default 1)",
    )
    group.add_argument("--token-file", metavar="FILE", help="what clients must show (else $KETRAG_TOKEN)")
    group.add_argument("--allow-write", action="store_true", help="clients may add documents to the indexes")
    group.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients call this server",
    )
    group.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="pages of that server may use this one",
    )
    bounds = parser.add_argument_group("bounds, for each worker")
    for flag, kind, text in _BOUNDS:
        bounds.add_argument(flag, type=kind, metavar="N" if kind is int else "X", help=text)
    options.topic(parser, "how passages are found", "query")
    models = parser.add_argument_group("the models")
    options.setting(models, "embedder")
    options.writer(models)
    options.setting(models, "llm_context", "llm_usd_per_million", "llm_usd_per_million_out")
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


_BOUNDS: tuple[tuple[str, type, str], ...] = (
    ("--concurrency", int, "questions that are answered at once (default: the processors)"),
    ("--queue", int, "questions that may wait; more are refused with 429 (default 512)"),
    ("--answer-queue", int, "answers of the language model that may wait (default 8)"),
    ("--batch", int, "questions put to the core together (default 8, with an embedding model 32)"),
    ("--max-body", int, "bytes of a request (default 1,000,000)"),
    ("--max-questions", int, "questions of one request (default 256)"),
    ("--max-budget", int, "tokens that a request may ask for (default 100,000)"),
    ("--max-connections", int, "open connections (default 1,024)"),
    ("--request-seconds", float, "for the passages of a request (default 30)"),
    ("--answer-seconds", float, "for an answer (default 300)"),
    ("--read-seconds", float, "in which a client must send its request (default 10)"),
    ("--cache-mb", float, "finished replies that are kept (default 64)"),
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
    """Runs the command."""
    try:
        from ketrag_fast.apps.server.options import ServerOptions, parse_indexes
        from ketrag_fast.apps.server.running import listen_sockets, serve, token_of
        from ketrag_fast.apps.server.supervisor import Supervisor
    except ImportError as error:
        raise BackendMissing(
            f"the service needs a package that is not installed: {error.name}",
            hint="pip install 'ketrag-fast[server]'",
        ) from None
    if not 0 <= args.port <= _MOST_PORT or not 1 <= args.workers <= _MOST_WORKERS:
        raise ConfigError(f"--port is from 0 to {_MOST_PORT:,}, --workers from 1 to {_MOST_WORKERS}")
    if args.workers > 1 and os.name == "nt":
        raise ConfigError("--workers: this system runs one worker", hint="leave --workers out")
    bounds: dict[str, Any] = {}
    for flag, name in _FIELDS.items():
        value = getattr(args, flag)
        if value is not None:
            if value <= 0:
                raise ConfigError(f"--{flag.replace('_', '-')} must be above 0")
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
        hosts=tuple(args.allow_host),
        origins=tuple(args.allow_origin),
        **bounds,
    )
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
