"""Configurations to compare: named settings from a TOML file, flags, presets or a sweep.

embedder = "sentence-transformers:/models/minilm"     # default of all rows

[[build]]
name = "rules"
system = "ket-rag"
llm = "heuristic"

[[build]]
name = "api"
system = "ket-rag"
llm = "openai:gpt-4o-mini@https://api.openai.com/v1"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import Settings, catalogue, find_setting, names, parse, resolve
from ketrag_fast.base.safe_io import read_toml
from ketrag_fast.errors import ConfigError
from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.registry import registry

MOST: Final = 100
"""Maximum number of configurations in one report."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A name and its settings. `varied` are the values that a sweep gave it."""

    name: str
    settings: Mapping[str, Any]
    varied: Mapping[str, Any] = field(default_factory=dict)

    def resolved(self, common: Settings) -> Settings:
        """Return all its settings; those it does not set come from `common`."""
        asked = Settings(**{**common.given, **self.settings})
        return resolve(flags=asked.given, presets=registry().table).settings

    def to_build(self, common: Settings, modes: Sequence[str] = ()) -> Settings:
        """Return the settings for a build, complete, so that none come from an older index.

        The stages built are those for its `modes`; if it has none, for `modes`, else for its own mode.
        """
        whole = self.resolved(common)
        asked = Settings(**{**common.given, **self.settings})
        building = {name: whole.value(name) for name in names("build", "read")}
        if "modes" not in asked.given:
            building["modes"] = ",".join(modes or [whole.mode])
        return Settings(**{**asked.given, **building})


def units_of(settings: Settings) -> tuple[Any, ...]:
    """Return the settings that decide whether earlier work can be reused: embedder, units, encoding."""
    return tuple(settings.value(name) for name, spec in catalogue().items() if spec.rebuild)


def from_file(path: str | Path) -> list[Configuration]:
    """Return the rows of a TOML file. Raises ConfigError that names file, row and setting."""
    path = Path(path)
    try:
        _, table = read_toml(path)
    except FileNotFoundError:
        raise ConfigError(f"cannot read {path}: No such file or directory") from None
    rows = table.pop("build", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path} names no builds", hint="write each as a table [[build]] with a name")
    common = _settings(table, str(path))
    found = []
    for number, row in enumerate(rows, 1):
        name = row.pop("name", None)
        if not isinstance(name, str):
            raise ConfigError(f"{path}: build {number} has no name")
        found.append(Configuration(name, {**common, **_settings(row, f"{path}: build {name!r}")}))
    return check_configurations(found)


def from_flag(text: str) -> Configuration:
    """Parse `NAME: setting=value, setting=value`, the form of `--build`."""
    name, colon, rest = text.partition(":")
    if not colon or "=" in name:
        raise ConfigError(f"--build {text!r} has no name", hint="write NAME: setting=value, setting=value")
    values: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(f"--build {name}: {part!r} is not setting=value")
        setting = find_setting(key, f" (in --build {name})")
        values[setting] = parse(setting, value)
    return Configuration(name.strip(), _settings(values, f"--build {name}"))


def from_systems(systems: Iterable[str]) -> list[Configuration]:
    """Return one row for each preset."""
    found = []
    for system in systems:
        _ = registry().table[system]  # raises for an unknown preset
        found.append(Configuration(system, {"system": system}))
    return check_configurations(found)


def check_configurations(found: Sequence[Configuration]) -> list[Configuration]:
    """Return the configurations. Raises ConfigError for missing or repeated names, or too many rows."""
    if not found:
        raise ConfigError("there is nothing to compare", hint="name builds with --build or --builds FILE")
    if len(found) > MOST:
        raise ConfigError(f"{len(found)} configurations are more than the {MOST} that one report holds")
    seen: set[str] = set()
    for configuration in found:
        name = configuration.name
        if not name.strip() or len(name) > 80 or not name.isprintable():
            raise ConfigError(
                f"{name!r} is not a valid name of a configuration", hint="use 1 to 80 characters"
            )
        if name in seen:
            raise ConfigError(f"two configurations are named {name!r}")
        seen.add(name)
    return list(found)


def _settings(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    found = {find_setting(name, f" (in {where})"): value for name, value in values.items()}
    for name in found:
        if catalogue()[name].concerns == "run":
            raise ConfigError(
                f"{where}: {name} does not change results, so there is nothing to compare",
                hint=f"set it for the whole report: --{name.replace('_', '-')}",
            )
    try:
        Settings(**found)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from None
    return found


def parse_vary(text: str) -> tuple[str, list[Any]]:
    """Parse a setting and its values. Each value is checked as the setting's flag checks it."""
    key, equals, rest = text.partition("=")
    if not equals:
        raise ConfigError(
            f"--vary {text!r} is not SETTING=VALUE,VALUE", hint="for example core_ratio=0.2,0.4,0.8"
        )
    name = find_setting(key, " (in --vary)")
    if catalogue()[name].concerns in ("run", "read"):
        raise ConfigError(f"--vary {name}: the setting does not change scores")
    if name == "mode":
        raise ConfigError("--vary does not take mode", hint="use --mode text,keyword,walk")
    values = []
    for part in rest.split(","):
        value = parse(name, part)
        Settings(**{name: value})
        if value in values:
            raise ConfigError(f"--vary {name}: {part.strip()} is repeated")
        values.append(value)
    return name, values


def points(vary: Sequence[tuple[str, Sequence[Any]]], *, grid: bool = False) -> list[Configuration]:
    """Return a point for each value of each setting, the others unchanged; with `grid` every combination."""
    names = [name for name, _ in vary]
    if not vary:
        raise ConfigError("nothing is varied", hint="--vary SETTING=VALUE,VALUE,...")
    if len(set(names)) != len(names):
        raise ConfigError(f"--vary {next(n for n in names if names.count(n) > 1)} is given twice")
    rows: Iterable[dict[str, Any]]
    if grid:
        rows = (dict(zip(names, values, strict=True)) for values in product(*(v for _, v in vary)))
    else:
        rows = ({name: value} for name, values in vary for value in values)
    found = []
    for row in rows:
        found.append(Configuration(", ".join(f"{n}={_text(v)}" for n, v in row.items()), row, row))
        if len(found) > MOST:
            raise ConfigError(f"a sweep has at most {MOST} points", hint="vary less, or leave --grid out")
    return check_configurations(found)


def order(configurations: Sequence[Configuration], common: Settings) -> list[int]:
    """Return the order of building: points with the same embedder and units together, the largest core first.

    With the largest core first, later points find the replies to all their chunks cached.
    """
    groups: dict[tuple[Any, ...], int] = {}
    keys = []
    for place, configuration in enumerate(configurations):
        settings = configuration.resolved(common)
        group = groups.setdefault(units_of(settings), len(groups))
        # An index keeps its entity graph, so points without one are built first.
        core = settings.value("core_ratio") if "core_ratio" in names() else 0.0
        keys.append((group, settings.llm != "none", -core, place))
    return [place for *_, place in sorted(keys)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
