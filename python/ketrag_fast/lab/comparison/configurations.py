"""What is compared: named rows of settings, from a TOML file, from flags, from presets, or from a sweep.

embedder = "sentence-transformers:/models/minilm"     # for every row that does not say otherwise

[[build]]
name = "rules"
system = "ket-rag-p"
llm = "heuristic"

[[build]]
name = "api"
system = "ket-rag-p"
llm = "openai:gpt-4o-mini@https://api.openai.com/v1"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import Settings, catalogue, find_setting, names, parse, resolve
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.registry import registry

MOST: Final = 100
"""Configurations in one report."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A name and what it sets. `varied` are the values that a sweep gave it."""

    name: str
    settings: Mapping[str, Any]
    varied: Mapping[str, Any] = field(default_factory=dict)

    def resolved(self, common: Settings) -> Settings:
        """All its settings, each given: `common` counts where the configuration is silent."""
        asked = Settings(**{**common.given, **self.settings})
        return resolve(flags=asked.given, presets=registry().table).settings

    def to_build(self, common: Settings, modes: Sequence[str] = ()) -> Settings:
        """The same for a build: every build setting is given, so that nothing is left to an older index.

        Built is what its `modes` need; where it names none, what these do, else what its own mode does.
        """
        whole = self.resolved(common)
        asked = Settings(**{**common.given, **self.settings})
        building = {name: whole.value(name) for name in names("build", "read")}
        if "modes" not in asked.given:
            building["modes"] = ",".join(modes or [whole.mode])
        return Settings(**{**asked.given, **building})


def units_of(settings: Settings) -> tuple[Any, ...]:
    """What decides which earlier work can be kept at all: embedder, units, encoding."""
    return tuple(settings.value(name) for name, spec in catalogue().items() if spec.rebuild)


def from_file(path: str | Path) -> list[Configuration]:
    """The rows of a TOML file. Raises ConfigError that names file, row and setting."""
    from ketrag_fast.base.config.files import (
        read_toml,  # here, so that `--help` does not wait for a TOML parser
    )

    path = Path(path)
    try:
        table = read_toml(path)
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
    """`NAME: setting=value, setting=value`, as `--build` takes it."""
    name, colon, rest = text.partition(":")
    if not colon or "=" in name:
        raise ConfigError(f"--build {text!r} has no name", hint="write NAME: setting=value, setting=value")
    values: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(f"--build {name}: {part!r} is no setting=value")
        setting = find_setting(key, f" (in --build {name})")
        values[setting] = parse(setting, value)
    return Configuration(name.strip(), _settings(values, f"--build {name}"))


def from_systems(systems: Iterable[str]) -> list[Configuration]:
    """One row for each preset."""
    found = []
    for system in systems:
        _ = registry().table[system]  # raises where there is none
        found.append(Configuration(system, {"system": system}))
    return check_configurations(found)


def check_configurations(found: Sequence[Configuration]) -> list[Configuration]:
    """The same, if names are there, differ, and are not too many."""
    if not found:
        raise ConfigError("there is nothing to compare", hint="name builds with --build or --builds FILE")
    if len(found) > MOST:
        raise ConfigError(f"{len(found)} configurations are more than the {MOST} that one report holds")
    seen: set[str] = set()
    for configuration in found:
        name = configuration.name
        if not name.strip() or len(name) > 80 or not name.isprintable():
            raise ConfigError(f"{name!r} is no name for a configuration", hint="use 1 to 80 characters")
        if name in seen:
            raise ConfigError(f"two configurations are named {name!r}")
        seen.add(name)
    return list(found)


def _settings(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    found = {find_setting(name, f" (in {where})"): value for name, value in values.items()}
    for name in found:
        if catalogue()[name].concerns == "run":
            raise ConfigError(
                f"{where}: {name} changes no result, so there is nothing to compare",
                hint=f"give it once for all: --{name.replace('_', '-')}",
            )
    try:
        Settings(**found)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from None
    return found
