"""Entry point of the command: parses arguments, runs one command, maps errors to exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.command_parser import CommandParser, suggestion
from ketrag_fast.errors import KetragError, OutOfMemory

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS: Final = {
    "Find": {
        "search": ("search", "find passages in your files"),
        "get": ("search:declare_get", "print the indexed text of a file, or some lines of it"),
        "grep": ("grep", "find lines that match a pattern"),
        "retrieve": ("retrieve", "print the context for a query, for a prompt"),
        "ask": ("ask", "answer a question, with citations"),
        "themes": ("themes", "show what the documents are about"),
        "graph": ("graph", "show an entity, its relations and its sentences"),
        "documents": ("documents", "list the documents of an index"),
    },
    "Index": {
        "index": ("index", "build an index, or update it from its sources"),
        "add": ("changes:declare_add", "add documents; no other source is read"),
        "remove": ("changes:declare_remove", "remove documents"),
        "watch": ("watch", "rebuild whenever a folder changes"),
        "collections": ("collections", "list the indexes that have a name"),
        "describe": ("collections:declare_describe", "say what is in a folder, for people and assistants"),
        "read": ("documents:declare_read", "preview how a file is read: text, locations, metadata"),
        "reembed": ("upkeep:declare_reembed", "replace the vectors by those of another embedding model"),
        "stats": ("stats", "print what an index contains"),
    },
    "Share": {
        "serve": ("serve", "serve indexes over HTTP, with a web page"),
        "mcp": ("mcp", "offer indexes to an assistant (Model Context Protocol)"),
        "bundle": ("bundle", "write an index into one file"),
        "unbundle": ("bundle:declare_unbundle", "restore an index from such a file"),
        "merge": ("merge", "merge several indexes into one"),
        "import": ("import_index", "build an index from the files of GraphRAG or LightRAG"),
        "export": ("export", "write a graph for GraphRAG, Gephi, Neo4j and other programs"),
        "recording": ("import_index:declare_recording", "convert the extraction of another tool"),
    },
    "Measure and maintain": {
        "eval": ("evaluate", "score retrieval and answers on a data set"),
        "bench": ("bench", "compare builds, systems or settings on a data set"),
        "estimate": ("estimate", "predict tokens, calls, USD and hours of a build"),
        "diff": ("stats:declare_diff", "compare two indexes, or two generations of one"),
        "train": ("train", "train a system on judged queries"),
        "compact": ("upkeep", "write the small changes of a large index into its files"),
        "upgrade": ("upkeep:declare_upgrade", "upgrade an index of the previous format"),
        "doctor": ("doctor", "verify every byte of an index"),
        "config": ("config", "list settings and show where their values come from"),
        "models": ("models", "list, check or install embedding models"),
        "trust": ("trust", "confirm the endpoints that an index names"),
        "completion": ("completion", "print a completion script for bash, zsh or fish"),
    },
}
"""The commands by group: name, module (`:` and its function, unless that is `declare`), help."""
COMMANDS: Final = {name: row for commands in GROUPS.values() for name, row in commands.items()}

GROUP: Final = "ketrag.commands"
"""The entry point group of commands from other packages (docs/how-to/own-mode.md)."""
_DESCRIPTION = "Graph indexes for retrieval, built and queried on this machine."
EPILOG = """`ketrag COMMAND -h` shows the common options of a command, `ketrag COMMAND --help` all of them.
Exit codes: 0 done, 1 failed or nothing found, 2 wrong usage, 3 partly done (failures are listed), 4 index
missing, damaged or incomplete, 5 network or endpoint not allowed, 130 interrupted."""
_TOP_FLAGS = ("-h", "--help", "--version")
_RESUME = "run the same command again"
_ELSEWHERE = {"purge": "ketrag remove --purge ID"}
"""Misleading command names, and the command to use instead."""


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
        """Return the same."""
        return self.format_help()


def parser(names: Sequence[str] | None = None) -> CommandParser:
    """Return the parser of the command line, with all commands or only with those of these names.

    Declaring one command is much faster than declaring all.
    """
    top = _TopParser(prog="ketrag", description=_DESCRIPTION)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    top.set_defaults(go_on=_RESUME, json=False, code=0)
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for name in (*COMMANDS, *outside_commands()) if names is None else names:
        from ketrag_fast.apps.cli import options

        if name in COMMANDS:
            module, _, function = COMMANDS[name][0].partition(":")
            declare = getattr(import_module(f"ketrag_fast.apps.cli.{module}"), function or "declare")
            declare(commands, options.common())
        else:
            from ketrag_fast.apps.cli import outside

            outside.declare(outside_commands()[name], commands, options.common())
        _set_parser(commands.choices[name])
    return top


@cache
def outside_commands() -> Mapping[str, EntryPoint]:
    """Return the commands of other packages, by name. They cannot replace a built-in command."""
    from ketrag_fast.base.entry_points import entry_points

    return {point.name: point for _, point in entry_points(GROUP) if point.name not in COMMANDS}


def _set_parser(command: Any) -> None:
    """Let a command and its sub-commands record the parser that read their arguments."""
    command.set_defaults(parser=command)
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _set_parser(inner)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments; exit with 2 and a suggestion if they are wrong."""
    match [*argv]:
        case [name, *_] if name in COMMANDS:
            top = parser([name])
        case [name, *_] if not name.startswith("-"):
            if name not in outside_commands():
                near = suggestion(name, (*COMMANDS, *outside_commands()))
                parser([]).error(
                    f"unknown command {name!r}", _ELSEWHERE.get(name) or near or "ketrag -h lists them"
                )
            top = parser([name])
        case [option, *words] if option not in _TOP_FLAGS and not COMMANDS.keys().isdisjoint(words):
            hint = "options follow the command: ketrag COMMAND ..."
            parser([]).error(f"option {option} is before the command", hint)
        case _:
            top = parser([])
    args: argparse.Namespace
    args, unknown = top.parse_known_args(argv)
    if unknown:
        args.parser.reject(unknown)
    if getattr(args, "quiet", False) and args.verbose:
        args.parser.error("-q and -v contradict each other")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    output.prepare()
    try:
        args = parse(sys.argv[1:] if argv is None else list(argv))  # imports the command
    except KeyboardInterrupt:
        return output.report_interrupt(_RESUME, as_json=False)
    try:
        args.code = args.run(args)
        sys.stdout.flush()
        return int(args.code)
    except KetragError as error:
        return _fail(error, args)
    except KeyboardInterrupt:
        return output.report_interrupt(args.go_on, as_json=args.json)
    except BrokenPipeError:  # the program that reads our output has ended: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(args.code)  # the command's code if its work was done, else 0
    except OSError as error:
        return output.fail(KetragError(f"I/O error: {error}"), as_json=args.json)
    except MemoryError:
        return output.fail(OutOfMemory("out of memory"), as_json=args.json)


def _fail(error: KetragError, args: argparse.Namespace) -> int:
    """Print an error of the command; return the exit code."""
    from ketrag_fast.apps.cli.error_context import add_context

    return output.fail(add_context(error, args), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
