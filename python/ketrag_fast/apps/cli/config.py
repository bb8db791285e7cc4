"""`ketrag config show`: each setting with its origin."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.base.config import catalogue, names, resolve


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser("config")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show",
        parents=[shared],
        help="each setting with its origin",
        description="Prints each setting with its origin: flag, environment, file, index, system or default.",
    )
    options.setting(show.add_argument_group("settings"), *_flags())
    show.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from ketrag_fast.systems.index_settings import stored_settings
    from ketrag_fast.systems.registry import registry

    path, origin = options.index_path(args)
    flag, environment, file = options.parse_settings(args)
    resolved = resolve(
        flags=flag, environment=environment, file=file, index=stored_settings(path), presets=registry().table
    )
    values = {name: resolved.settings.value(name) for name in names()}
    if args.json:
        settings = {name: {"value": v, "origin": resolved.origins[name]} for name, v in values.items()}
        about = {"path": str(path), "origin": origin}
        output.write_json({"schema": "ketrag/config/1", "index": about, "settings": settings})
        return 0
    rows = [("index", inline(path), origin)]
    rows += [(name, _format_value(value), resolved.origins[name]) for name, value in values.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    output.write("\n".join(f"{n:<{widths[0]}}  {v:<{widths[1]}}  {o}" for n, v, o in rows))
    return 0


def _flags() -> tuple[str, ...]:
    return tuple(name for name, spec in catalogue().items() if spec.topic != "common")


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else inline(value)
