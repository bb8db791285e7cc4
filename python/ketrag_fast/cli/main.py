"""The entry of the command: parses, runs one command, turns errors into exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ketrag_fast.cli import (
    ask,
    bench,
    config,
    estimate,
    evaluate,
    graph,
    index,
    models,
    options,
    output,
    recording,
    reembed,
    retrieve,
    stats,
)
from ketrag_fast.errors import KetragError

_EPILOG = """exit codes: 0 done, 1 failed, 2 wrong usage, 3 done in part (failures are listed),
4 index missing, damaged or lacking what is needed, 5 network not allowed, 130 interrupted"""


class _Version(argparse.Action):
    """Prints the version, which only the compiled core knows."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ketrag_fast._core import __version__

        output.write(f"ketrag {__version__}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="ketrag",
        description="Graph indexes for retrieval, built and queried on this machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    shared = options.common()
    for command in (
        index,
        reembed,
        retrieve,
        ask,
        evaluate,
        estimate,
        bench,
        graph,
        stats,
        models,
        recording,
        config,
    ):
        command.add(commands, shared)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    output.prepare()
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except KetragError as error:
        return output.fail(error, as_json=args.json)
    except KeyboardInterrupt:
        return output.interrupted(args.go_on, as_json=args.json)
    except BrokenPipeError:  # whoever read our output has gone; nothing is wrong here
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return output.fail(KetragError(f"the system says: {error}"), as_json=args.json)
    except MemoryError:
        return output.fail(KetragError("this machine's memory does not suffice"), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
