"""`ketrag mcp`: offer indexes to an assistant."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output, serve
from ketrag_fast.apps.cli.assistants import ASSISTANTS, SKILL, Edit, edits, lines, write
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.apps.cli.terminal_text import one_line
from ketrag_fast.errors import BackendMissing, ConfigError

_PORT = 8766


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "mcp",
        parents=[shared],
        conflict_handler="resolve",
        description="Offer indexes to an assistant by the Model Context Protocol: search, read, grep, list, "
        "themes, and ask if there is a model. Over standard input and output, or over HTTP with --http. "
        "--install writes the settings of an assistant.",
        examples=(
            "ketrag mcp --install claude-code",
            "ketrag mcp --install codex --user -c notes --print",
            "ketrag mcp -i notes=./notes -i laws=./laws --llm llama-cpp:model.gguf",
            "ketrag mcp -i docs-index --http --port 8766",
        ),
    )
    group = parser.add_argument_group("installation")
    group.add_argument(
        "--install",
        choices=tuple(ASSISTANTS),
        metavar="ASSISTANT",
        help="add the server to the settings of an assistant, and a skill that says when to use which tool: "
        + ", ".join(ASSISTANTS),
    )
    group.add_argument(
        "--user", action="store_true", help="for all projects, not only for the working directory"
    )
    group.add_argument("--print", action="store_true", help="print what to add, and write nothing")
    group.add_argument("--yes", action="store_true", help="write without asking")
    serve.add_indexes(parser)
    group = parser.add_argument_group("HTTP")
    group.add_argument("--http", action="store_true", help="listen on a port instead of standard input")
    serve.add_address(group, _PORT)
    group.add_argument("--token-file", **serve.TOKEN_FILE)
    mark_rare(group.add_argument("--allow-host", **serve.ALLOW_HOST))
    serve.add_models(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until the client disconnects or until Ctrl-C, which is the normal end."""
    if args.install is not None:
        return _install(args)
    for name in ("user", "print", "yes"):
        if getattr(args, name):
            raise ConfigError(f"--{name} needs --install", hint=f"--install {next(iter(ASSISTANTS))}")
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


def _install(args: argparse.Namespace) -> int:
    """Add the server to the settings of an assistant."""
    if args.http:
        raise ConfigError("--install with --http: assistants start the server themselves")
    words = _command(args)
    if args.print:
        assistant = ASSISTANTS[args.install]
        for path, text in (
            (assistant.settings(for_user=args.user), lines(args.install, words)),
            (assistant.skill(for_user=args.user), SKILL),
        ):
            output.write(f"# {path}\n{text}")
        return 0
    wanted = edits(args.install, words, for_user=args.user)
    if not wanted:
        output.say(f"{args.install} has these settings already")
        return 0
    for edit in wanted:
        output.write(_diff(edit))
    if not args.yes and not _is_confirmed(len(wanted)):
        output.say("nothing was written")
        return 1
    for edit in wanted:
        write(edit)
        output.say(f"wrote {edit.path}")
    return 0


def _command(args: argparse.Namespace) -> list[str]:
    """Return the command that an assistant runs, with the indexes and settings of this one."""
    own = Path(sys.executable).with_name("ketrag.exe" if os.name == "nt" else "ketrag")
    words = [str(own)] if own.is_file() else [sys.executable, "-m", "ketrag_fast"]
    words.append("mcp")
    indexes = args.index or ([os.environ["KETRAG_INDEX"]] if os.environ.get("KETRAG_INDEX") else [])
    if args.collection is not None:
        words += ["-c", args.collection]
    elif indexes or Path(".ketrag").exists():
        from ketrag_fast.apps.server.options import DEFAULT_NAME, parse_indexes

        for name, folder in parse_indexes(indexes or [".ketrag"]).items():
            words += ["-i", folder if name == DEFAULT_NAME else f"{name}={folder}"]
    for name, value in vars(args).items():
        if name.startswith("set_") and value is not None:
            words += ["-o", f"{name.removeprefix('set_')}={value}"]
    for text in args.assignments or ():
        words += ["-o", text]
    return words


def _diff(edit: Edit) -> str:
    """Return what changes in a file."""
    rows = unified_diff(
        (edit.before or "").splitlines(),
        edit.after.splitlines(),
        "" if edit.before is None else str(edit.path),
        str(edit.path),
        lineterm="",
    )
    return "\n".join(one_line(row) for row in rows)


def _is_confirmed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("cannot ask for confirmation: standard input is not a terminal", hint="add --yes")
    files = "this file" if count == 1 else f"these {count} files"
    return input(f"Write {files}? [y/N] ").strip().lower() in ("y", "yes")
