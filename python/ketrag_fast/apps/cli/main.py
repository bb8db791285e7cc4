"""Entry point of the command: parses arguments, runs one command, maps errors to exit codes."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.command_parser import CommandParser, suggestion
from ketrag_fast.errors import KetragError, OutOfMemory

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ketrag_fast.apps.cli.command import Command

GROUPS: Final = {
    "Find": {
        "search": ("search:Search", "find passages in your files"),
        "get": ("search:Get", "print the indexed text of a file, or some lines of it"),
        "grep": ("search:Grep", "find lines that match a pattern"),
        "retrieve": ("retrieve:Retrieve", "print the context for a query, for a prompt"),
        "ask": ("ask:Ask", "answer a question, with citations"),
        "themes": ("explore:ShowThemes", "show what the documents are about"),
        "graph": ("explore:Graph", "show an entity, its relations and its sentences"),
        "documents": ("documents:Documents", "list the documents of an index"),
    },
    "Index": {
        "index": ("index:Build", "build an index, or update it from its sources"),
        "add": ("changes:Add", "add documents; no other source is read"),
        "remove": ("changes:Remove", "remove documents"),
        "watch": ("watch:Watch", "rebuild whenever a folder changes"),
        "collections": ("documents:Collections", "list the named indexes"),
        "annotate": ("documents:Annotate", "store what a folder contains, for people and assistants"),
        "read": ("documents:Read", "preview how a file is read: text, locations, metadata"),
        "reembed": ("changes:Reembed", "replace the vectors by those of another embedding model"),
        "stats": ("stats:Stats", "print what an index contains"),
    },
    "Share": {
        "serve": ("serve:Serve", "serve indexes over HTTP, with a web page"),
        "users": ("users:Users", "add, revoke and list the users of a service"),
        "mcp": ("serve:Mcp", "offer indexes to an assistant (Model Context Protocol)"),
        "bundle": ("interchange:Bundle", "write an index into one file"),
        "merge": ("changes:Merge", "merge several indexes into one"),
        "import": (
            "interchange:Import",
            "restore a bundle, or reuse the files of GraphRAG or LightRAG",
        ),
        "export": ("interchange:Export", "write a graph for GraphRAG, Gephi, Neo4j and other programs"),
    },
    "Measure and maintain": {
        "eval": ("evaluate:Evaluate", "score retrieval and answers on a data set"),
        "bench": ("bench:Bench", "compare builds, systems, settings or two indexes; train a system"),
        "estimate": ("bench:Estimate", "predict tokens, calls, USD and hours of a build"),
        "doctor": ("stats:Doctor", "verify every byte of an index"),
        "config": ("config:Config", "list settings and show where their values come from"),
        "models": ("models:Models", "list, check or install embedding models"),
        "trust": ("trust:Trust", "confirm endpoints and sources of an index, and settings files"),
        "completion": ("completion:Completion", "print a completion script for bash, zsh or fish"),
    },
}
"""The commands by group: name, module and class, help."""
COMMANDS: Final = {name: row for commands in GROUPS.values() for name, row in commands.items()}

GROUP: Final = "ketrag.commands"
"""The entry point group of commands from other packages (docs/how-to/own-mode.md)."""
_DESCRIPTION = "Graph indexes for retrieval, built and queried on this machine."
EPILOG = """`ketrag COMMAND -h` shows the common options of a command, `ketrag COMMAND --help` all of them.
Exit codes: 0 done, 1 failed or nothing found, 2 wrong usage, 3 partly done (failures are listed), 4 index
missing, damaged or incomplete, 5 network, endpoint or settings file not allowed, 130 interrupted."""
_TOP_FLAGS = ("-h", "--help", "--version")
_ELSEWHERE = {
    "describe": 'ketrag annotate FOLDER "TEXT"',
    "diff": "ketrag bench diff A B",
    "purge": "ketrag remove --purge ID",
    "train": "ketrag bench train SYSTEM DATASET",
    "unbundle": "ketrag import bundle FILE",
}
"""Names that people expect of commands, and the command to use instead."""


_GARBAGE: Final = 10_000
"""Objects after which Python looks for cycles. With its default of 700 this takes a twentieth of a search,
most of it while modules are imported; 50,000 saves no more.
"""


class _Version(argparse.Action):
    """Prints the version, which is read from the compiled core."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ketrag_fast import __version__

        output.write(f"ketrag {__version__}")
        parser.exit()


class _TopParser(CommandParser):
    """The parser of `ketrag` itself: its help lists the commands by group."""

    def format_usage(self) -> str:
        """Return the usage line."""
        return "usage: ketrag COMMAND [options]\n"

    def format_help(self) -> str:
        """Return the commands by group."""
        lines = [self.format_usage(), f"{_DESCRIPTION}\n"]
        for title, commands in GROUPS.items():
            lines.append(f"{title}:")
            lines += [f"  {name:<13}{text}" for name, (_, text) in commands.items()]
            lines.append("")
        if outside_commands():
            from ketrag_fast.apps.cli.outside import help_of

            lines.append("Of other packages:")
            lines += [f"  {name:<13}{help_of(point)}" for name, point in outside_commands().items()]
            lines.append("")
        return (
            "\n".join(
                [*lines, "  -h, --help  print this help", "  --version   print the version", "", EPILOG]
            )
            + "\n"
        )

    def format_short_help(self) -> str:
        """Return the commands by group, too."""
        return self.format_help()


def parser(names: Iterable[str] | None = None) -> CommandParser:
    """Return the parser of the command line, with all commands or only with those of these names.

    Declaring one command is much faster than declaring all.
    """
    top = _TopParser(prog="ketrag", description=_DESCRIPTION)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for name in (*COMMANDS, *outside_commands()) if names is None else names:
        if name in COMMANDS:
            from ketrag_fast.apps.cli.command import declare

            (module, _, kind), text = COMMANDS[name][0].partition(":"), COMMANDS[name][1]
            declare(commands, name, getattr(import_module(f"ketrag_fast.apps.cli.{module}"), kind), text)
        else:
            from ketrag_fast.apps.cli import outside

            outside.declare(outside_commands()[name], commands)
    return top


@cache
def outside_commands() -> Mapping[str, EntryPoint]:
    """Return the commands of other packages, by name. They cannot replace a built-in command."""
    from ketrag_fast.base.entry_points import entry_points

    return {point.name: point for _, point in entry_points(GROUP) if point.name not in COMMANDS}


def parse(argv: Sequence[str]) -> Command:
    """Return the command with its arguments; exit with 2 and a suggestion if they are wrong."""
    match [*argv]:
        case [name, *_] if name in COMMANDS or (not name.startswith("-") and name in outside_commands()):
            top = parser([name])
        case [name, *_] if not name.startswith("-"):
            near = suggestion(name, (*COMMANDS, *outside_commands()))
            hint = _ELSEWHERE.get(name) or near or "ketrag -h lists them"
            parser([]).error(f"unknown command {name!r}", hint)
        case [option, *words] if option not in _TOP_FLAGS and not COMMANDS.keys().isdisjoint(words):
            hint = "options follow the command: ketrag COMMAND ..."
            parser([]).error(f"option {option} is before the command", hint)
        case _:
            top = parser([])
    parsed, unknown = top.parse_known_args(argv)
    if unknown:
        parsed.parser.reject(unknown)
    command: Command = parsed.make(parsed)
    if command.quiet and command.verbose:
        parsed.parser.error("-q and -v contradict each other")
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    output.prepare()
    gc.set_threshold(_GARBAGE)
    try:
        command = parse(sys.argv[1:] if argv is None else argv)  # imports its module
    except KeyboardInterrupt:
        return output.report_interrupt("run the same command again", as_json=False)
    if argv is None and command.answers_once:  # the process is ours, and ends
        from ketrag_fast.query.open_generation import expect_few_queries

        expect_few_queries()
    try:
        code = command.run()
        output.write_notices()
        sys.stdout.flush()
        return code
    except KetragError as error:
        from ketrag_fast.apps.cli.options import add_context

        return output.fail(add_context(error, command), as_json=command.json)
    except KeyboardInterrupt:
        return output.report_interrupt(command.go_on, as_json=command.json)
    except BrokenPipeError as error:  # the program that reads our output has ended: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error.code if isinstance(error, output.OutputClosed) else 0
    except OSError as error:
        return output.fail(KetragError(f"I/O error: {error}"), as_json=command.json)
    except MemoryError:
        return output.fail(OutOfMemory("out of memory"), as_json=command.json)


if __name__ == "__main__":
    sys.exit(main())
