"""`ketrag config list` and `ketrag config show`: settings, and the origin of each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, Flags, argument, settings
from ketrag_fast.apps.cli.command_parser import CommandParser, suggestion
from ketrag_fast.apps.terminal import inline
from ketrag_fast.base.config import Setting, catalogue, names, resolve
from ketrag_fast.base.config.settings import about_broken, systems
from ketrag_fast.errors import ConfigError

_SHARED = "shared"
_FIRST = ("system", "modes", "embedder", "llm")


class List(Command):
    """List settings: name, type, default, range and help. Each one can be given as -o NAME=VALUE, as NAME =
    VALUE in ketrag.toml, or as KETRAG_NAME."""

    examples = ("ketrag config list", "ketrag config list walk", "ketrag config list shared --json")
    system: str | None = argument("SYSTEM", "list those of one system, or `shared`")

    def run(self) -> int:
        """Print the declarations of the settings."""
        owners = list(dict.fromkeys(spec.owner or _SHARED for spec in catalogue().values()))
        owner = None if self.system is None else _owner_of(self.system, owners)
        specs = [spec for spec in catalogue().values() if owner in (None, spec.owner or _SHARED)]
        if self.json:
            output.write_json({"schema": "ketrag/settings/1", "settings": [_as_json(one) for one in specs]})
            return 0
        head = ("name", "type", "default", "range", "help")
        rows = [head]
        rows += [(s.name, type_of(s), _format_value(s.default), range_of(s), s.help) for s in specs]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        widths = [min(width, limit) for width, limit in zip(widths, (24, 8, 16, 28), strict=True)]
        for row in rows:
            cells = [f"{inline(cell):<{width}}" for cell, width in zip(row[:4], widths, strict=True)]
            output.write("  ".join([*cells, inline(row[4])]))
        return 0


def _show_settings(parser: CommandParser) -> None:
    flags = (name for name, spec in catalogue().items() if spec.flag and spec.topic != "common")
    for one in (
        settings(*_FIRST, title="settings"),
        settings(*(name for name in flags if name not in _FIRST), title="settings", rare=True),
    ):
        one.declare(parser)


class Show(Command):
    """Print the value of each setting and its origin: flag, environment, file, index, system or default."""

    examples = (
        "ketrag config show -i docs-index",
        "ketrag config show --system ket-rag",
        "KETRAG_SEED=7 ketrag config show --json",
    )
    every = Flags(_show_settings)

    def run(self) -> int:
        """Print the values of the settings with their origins."""
        from ketrag_fast.systems.index_settings import stored_settings
        from ketrag_fast.systems.registry import registry

        path, origin = options.index_path(self)
        flag, environment, file = options.parse_settings(self)
        resolved = resolve(
            flags=flag,
            environment=environment,
            file=file,
            index=stored_settings(path),
            presets=registry().table,
        )
        values = {name: resolved.settings.value(name) for name in names()}
        if self.json:
            rows = {name: {"value": v, "origin": resolved.origins[name]} for name, v in values.items()}
            about = {"path": str(path), "origin": origin}
            output.write_json({"schema": "ketrag/config/1", "index": about, "settings": rows})
            return 0
        lines = [("index", inline(path), origin)]
        lines += [(name, _format_value(value), resolved.origins[name]) for name, value in values.items()]
        widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
        output.write("\n".join(f"{n:<{widths[0]}}  {v:<{widths[1]}}  {o}" for n, v, o in lines))
        return 0


class Config(Command):
    """List all settings, or show the value of each and where it comes from."""

    examples = (
        "ketrag config list walk",
        "ketrag config show -i docs-index",
        "ketrag config show --system default -o seed=7 --json",
    )
    actions = {  # noqa: RUF012
        "list": ("list settings: name, type, default, range, help", List),
        "show": ("show the value of each setting and its origin", Show),
    }


def _owner_of(name: str, owners: Sequence[str]) -> str:
    """Return the system that a name stands for: its own name or that of one of its presets.

    Raises ConfigError if there is no such system, or if it has no settings.
    """
    known = systems().preset_owners
    owner = name if name in owners else known.get(name, name)
    if owner in owners:
        return owner
    listed = f"systems with settings: {', '.join(owners)}"
    if name in known or owner in known.values():
        raise ConfigError(f"the system {owner} has no settings besides the shared ones", hint=listed)
    near = suggestion(name, [*owners, *known])
    raise ConfigError(
        f"unknown system {name!r}",
        hint=f"{near + ' ' if near else ''}{listed}{about_broken(systems().broken)}",
    )


def type_of(spec: Setting) -> str:
    """Return the type of a setting: text, integer, number or boolean."""
    kinds = {int: "integer", float: "number", bool: "boolean", str: "text"}
    return next(kinds[kind] for kind in spec.types if kind in kinds)


def range_of(spec: Setting) -> str:
    """Return the choices or the bounds of a setting; an empty text if it has none."""
    if spec.choices:
        return "|".join(spec.choices)
    if spec.types == (bool,):
        return "true|false"
    low = "" if spec.low is None else f"{spec.low:g}" if abs(spec.low) < 1e6 else f"{int(spec.low)}"
    high = "" if spec.high is None else f"{spec.high:g}" if abs(spec.high) < 1e6 else f"{int(spec.high)}"
    return f"{low}..{high}" if low or high else ""


def _as_json(spec: Setting) -> dict[str, Any]:
    return {
        "name": spec.name,
        "system": spec.owner or None,
        "type": type_of(spec),
        "default": spec.default,
        "optional": type(None) in spec.types,
        "choices": list(spec.choices),
        "min": spec.low,
        "max": spec.high,
        "concerns": spec.concerns,
        "help": spec.help,
    }


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else inline(value)
