"""Commands of other packages: entry points of the group `ketrag.commands` (docs/how-to/own-mode.md)."""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint
from typing import Any

from ketrag_fast.apps.cli import options
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ExtensionError, KetragError
from ketrag_fast.extending import Command
from ketrag_fast.index import Index


def help_of(point: EntryPoint) -> str:
    """Return the help of a command, or why it cannot be used."""
    try:
        return inline(_load(point).help)
    except ExtensionError as error:
        return inline(error.message)


def declare(point: EntryPoint, commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare a command. One that cannot be loaded reports the reason when it runs."""
    try:
        command = _load(point)
        parser = commands.add_parser(point.name, parents=[shared], description=command.help)
        command.declare(parser)
    except Exception as error:  # noqa: BLE001 - code of another package may raise anything
        reason = error if isinstance(error, ExtensionError) else _failure(point, error)
        commands.choices.pop(point.name, None)
        parser = commands.add_parser(point.name, parents=[shared], description=reason.message)
        parser.set_defaults(run=lambda _: _refuse(reason))
        return
    parser.set_defaults(run=lambda args: _run(point, command, args), go_on="run the same command again")


def _refuse(reason: ExtensionError) -> int:
    raise reason


def _run(point: EntryPoint, command: Command, args: argparse.Namespace) -> int:
    args.open_index = lambda: Index.open(options.one_path(args), settings=options.query_settings_of(args))
    try:
        return command.run(args)
    except (KetragError, OSError):
        raise
    except Exception as error:
        raise _failure(point, error) from error


def _load(point: EntryPoint) -> Command:
    """Load the command of an entry point. Raises ExtensionError."""
    try:
        command = point.load()
    except (Exception, SystemExit) as error:
        raise _failure(point, error) from error
    if not isinstance(command, Command):
        raise ExtensionError(f"the command {point.name} cannot be used: {point.value} is not a Command")
    return command


def _failure(point: EntryPoint, error: BaseException) -> ExtensionError:
    return ExtensionError(f"the command {point.name} failed: {type(error).__name__}: {error}")
