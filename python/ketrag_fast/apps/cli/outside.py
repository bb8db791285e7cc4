"""Commands of other packages: entry points of the group `ketrag.commands` (docs/how-to/own-mode.md)."""

from __future__ import annotations

from argparse import Namespace
from importlib.metadata import EntryPoint
from typing import Any

from ketrag_fast.apps.cli import options
from ketrag_fast.apps.cli.command import Command, declare_common, values_of
from ketrag_fast.apps.terminal import inline
from ketrag_fast.errors import ExtensionError, KetragError
from ketrag_fast.extending import Command as OutsideCommand


def help_of(point: EntryPoint) -> str:
    """Return the help of a command, or why it cannot be used."""
    try:
        return inline(_load(point).help)
    except ExtensionError as error:
        return inline(error.message)


class Outside(Command):
    """A command of another package, or the reason why it cannot be used."""

    name: str
    command: OutsideCommand | ExtensionError
    parsed: Namespace

    def run(self) -> int:
        """Run it with its parsed arguments; `open_index` opens the index of -i or -c."""
        if isinstance(self.command, ExtensionError):
            raise self.command
        self.parsed.open_index = lambda: options.open_index(self)
        try:
            return self.command.run(self.parsed)
        except (KetragError, OSError):
            raise
        except Exception as error:
            raise _failure(self.name, error) from error


def declare(point: EntryPoint, commands: Any) -> None:
    """Declare a command. One that cannot be loaded reports the reason when it runs."""
    command: OutsideCommand | ExtensionError
    try:
        command = _load(point)
        parser = commands.add_parser(point.name, help=command.help, description=command.help)
        declare_common(parser)
        command.declare(parser)
    except Exception as error:  # noqa: BLE001 - code of another package may raise anything
        command = error if isinstance(error, ExtensionError) else _failure(point.name, error)
        commands.choices.pop(point.name, None)
        parser = commands.add_parser(point.name, description=command.message)
        declare_common(parser)

    def make(parsed: Namespace) -> Command:
        return Outside(**values_of(parsed, Command), name=point.name, command=command, parsed=parsed)

    parser.set_defaults(parser=parser, make=make)


def _load(point: EntryPoint) -> OutsideCommand:
    """Load the command of an entry point. Raises ExtensionError."""
    try:
        command = point.load()
    except (Exception, SystemExit) as error:
        raise _failure(point.name, error) from error
    if not isinstance(command, OutsideCommand):
        raise ExtensionError(f"the command {point.name} cannot be used: {point.value} is not a Command")
    return command


def _failure(name: str, error: BaseException) -> ExtensionError:
    return ExtensionError(f"the command {name} failed: {type(error).__name__}: {error}")
