"""The entry of the command: parses, runs one command, turns errors into exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import KetragError, OutOfMemory

COMMANDS: Final = {
    "index": ("index", "build the index, or bring it up to date with its sources"),
    "add": ("add", "add documents to an index; no other source is read"),
    "remove": ("remove", "remove documents from an index"),
    "watch": ("watch", "build again whenever a folder changes"),
    "documents": ("documents", "list the documents of an index"),
    "bundle": ("bundle", "write an index into one file, to be carried elsewhere"),
    "unbundle": ("unbundle", "make an index of such a file"),
    "merge": ("merge", "make one index of several"),
    "diff": ("diff", "what differs between two indexes, or generations of one"),
    "reembed": ("reembed", "give the index the vectors of another model"),
    "retrieve": ("retrieve", "print the context for a question"),
    "ask": ("ask", "answer a question, with citations"),
    "eval": ("evaluate", "score retrieval on a data set"),
    "estimate": ("estimate", "tokens, calls, USD and hours of a build, before anything is spent"),
    "bench": ("bench", "compare builds, systems or settings on one data set"),
    "read": ("read", "what a reader makes of a file: text, places in it, metadata"),
    "graph": ("graph", "an entity, its relations and the sentences they come from"),
    "stats": ("stats", "what the index holds"),
    "doctor": ("doctor", "check every byte of an index, and say what to do about damage"),
    "trust": ("trust", "confirm the endpoints that an index names"),
    "train": ("train", "train a system on judged questions"),
    "serve": ("serve", "the index as a service, with OpenAI's protocol and a page"),
    "mcp": ("mcp", "the index as tools of an assistant (Model Context Protocol)"),
    "models": ("models", "embedding models found on this machine"),
    "recording": ("recording", "turn another tool's extraction into a recording"),
    "config": ("config", "the settings and where they come from"),
}
"""Each command with its module and what it does. Only the module of the command that runs is imported."""

_EPILOG = """exit codes: 0 done, 1 failed, 2 wrong usage, 3 done in part (failures are listed),
4 index missing, damaged or lacking what is needed, 5 network or endpoint not allowed, 130 interrupted"""


class _Version(argparse.Action):
    """Prints the version, which only the compiled core knows."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ketrag_fast._core import __version__

        output.write(f"ketrag {__version__}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Its messages repeat what was typed, or what a script put there: nothing of it moves the cursor."""

    def error(self, message: str) -> NoReturn:
        """As argparse's."""
        super().error(inline(message))


def parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The command line; where the words are given, with the options of the command among them alone."""
    top = _Parser(
        prog="ketrag",
        description="Graph indexes for retrieval, built and queried on this machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in argv if word in COMMANDS), None) if argv is not None else None
    for name, (module, text) in COMMANDS.items():
        if (
            argv is not None and name != chosen
        ):  # its options would take long to declare, and are not asked for
            commands.add_parser(name, help=text)
            continue
        from ketrag_fast.apps.cli import options

        import_module(f"ketrag_fast.apps.cli.{module}").add(commands, options.common())
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    output.prepare()
    words = sys.argv[1:] if argv is None else list(argv)
    args = parser(words).parse_args(words)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except KetragError as error:
        return output.fail(error, as_json=args.json)
    except KeyboardInterrupt:
        return output.report_interrupt(args.go_on, as_json=args.json)
    except BrokenPipeError:  # whoever read our output has gone; nothing is wrong here
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return output.fail(KetragError(f"the system says: {error}"), as_json=args.json)
    except MemoryError:
        return output.fail(OutOfMemory("this machine's memory does not suffice"), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
