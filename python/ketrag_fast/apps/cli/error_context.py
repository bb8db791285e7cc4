"""Adds to errors what only the command line knows: the index in use, and where a setting was given."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Final

from ketrag_fast.apps.cli import options
from ketrag_fast.base.config import catalogue
from ketrag_fast.base.config.sources import PREFIX
from ketrag_fast.errors import KetragError

# Not after "alone (": documents that are indexed alone belong in another index.
_COMMAND: Final = re.compile(
    r"(?<!alone \(`)\bketrag (?:index|reembed|upgrade|add|remove|documents|compact|doctor|stats|graph)"
    r"(?![\w-])"
    r"(?P<rest>(?:(?!\bketrag )[^`;])*)"
)
_INDEX: Final = re.compile(r"(?:^|\s)(?:-i|--index)\b")
_ADDED_MODE: Final = re.compile(r"--modes auto(?:,([\w-]+))?(?![\w,-])")
_SETTING: Final = re.compile(r"(\w+)(?:: | is | must )")
_OF_SEVERAL: Final = ("merge", "diff")
"""Commands that read other indexes than that of -i; their hints are about these."""


def add_context(error: KetragError, args: argparse.Namespace) -> KetragError:
    """Return an error that names where a wrong setting was given, with a hint that names the index."""
    message, hint = error.message, error.hint
    origin = _origin(error, args)
    error.message = f"{origin}: {message}" if origin else message
    error.hint = None if hint is None else complete_hint(hint, index_of(args))
    return error


def complete_hint(hint: str, index: str | None) -> str:
    """Complete the commands in a hint: add `-i INDEX`, and add modes instead of replacing them.

    Examples:
        >>> complete_hint("`ketrag index --modes auto,knn` adds it", "my notes")
        "`ketrag index -i 'my notes' --modes +knn` adds it"
        >>> complete_hint("rebuild the vectors: ketrag reembed", None)
        'rebuild the vectors: ketrag reembed'
    """
    hint = _ADDED_MODE.sub(lambda found: f"--modes +{found[1] or 'auto'}", hint)
    if index is None:
        return hint

    def named(found: re.Match[str]) -> str:
        if _INDEX.search(found["rest"]):
            return found[0]
        return f"{found[0].removesuffix(found['rest'])} -i {shlex.quote(index)}{found['rest']}"

    return _COMMAND.sub(named, hint)


def index_of(args: argparse.Namespace) -> str | None:
    """Return the index given by the user; None for the default index and for several."""
    named = getattr(args, "index", None)
    if isinstance(named, list):  # of a server: [NAME=]DIR
        named = named[0].rpartition("=")[2] if len(named) == 1 else None
    if not named or args.command in _OF_SEVERAL or Path(named) == Path(".ketrag"):
        return None
    return named if len(options.folders_of(named)) == 1 else None


def _origin(error: KetragError, args: argparse.Namespace) -> str | None:
    """Return where the setting at the start of a message was given; None for a flag, or if there is no
    setting."""
    found = _SETTING.match(error.message)
    if found is None or found[1] not in catalogue():
        return None
    try:
        flags, environment, file = options.parse_settings(args)
    except (KetragError, AttributeError):  # the error itself, or a command without settings
        return None
    name = found[1]
    if name in flags:
        return None
    if name in environment:
        return f"environment variable {PREFIX}{name.upper()}"
    return str(options.settings_file(args)) if name in file else None
