"""Which systems there are: those of the package, and what other packages bring.

Whatever depends on systems is made from here: settings, the command's options and their help, the names of
modes and presets, statistics, the tables in docs/. A package brings a system through the entry point group
`ketrag_fast.systems` (docs/extending.md). One that cannot be used is left out with the reason, and the rest
of the package is unharmed: only who names it meets the error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config.catalogue import about_broken
from ketrag_fast.base.config.fields import Setting, declared_settings, suggest
from ketrag_fast.base.config.shared import SharedSettings
from ketrag_fast.errors import ConfigError, ExtensionError, KetragError
from ketrag_fast.systems.spec.stage import Stage
from ketrag_fast.systems.spec.system import Channel, Recipe, System

if TYPE_CHECKING:
    from importlib import metadata

    from ketrag_fast.base.config import Settings

BUILT_IN: Final = ("plain", "walk", "ket_rag", "g2cons", "noderag", "cg_rag")
"""Modules of this package, in the order in which modes and settings are listed."""
GROUP: Final = "ketrag_fast.systems"
OWN: Final = "ketrag-fast"
LISTS: Final = ("auto", "all")
"""What `modes` takes beside names of modes."""


class PresetTable(dict[str, Mapping[str, Any]]):
    """The presets by name. Whoever asks for one of a system that cannot be used is told why."""

    def __init__(self, presets: Mapping[str, Mapping[str, Any]], broken: Mapping[str, str]) -> None:
        super().__init__(presets)
        self._broken = broken

    def __missing__(self, name: str) -> Mapping[str, Any]:
        if name in self._broken:
            raise ExtensionError(
                f"the system {name} cannot be used: {self._broken[name]}",
                hint="mend or uninstall the package that brings it",
            )
        hint = f"the systems are {', '.join(sorted(self))}{about_broken(self._broken)}"
        if near := suggest(str(name), self):
            hint = f"{near} {hint}"
        raise ConfigError(f"system: there is no system {name!r}", hint=hint)


@dataclass(frozen=True)
class Registry:
    """All systems that can be used, and by name what they declare. `broken` has the others, with reasons."""

    systems: tuple[System, ...]
    broken: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Iterator[tuple[str, type]]:
        """(system, its class of settings)."""
        return ((s.name, s.settings) for s in self.systems if s.settings is not None)

    @cached_property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Further values of settings that are open to systems."""
        found: dict[str, tuple[str, ...]] = {"mode": tuple(self.recipes)}
        for system in self.systems:
            for name, more in system.choices.items():
                found[name] = (*found.get(name, ()), *more)
        return found

    @cached_property
    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """Values worth listing in the help of settings that take any text."""
        return {"system": tuple(self.presets), "modes": (*LISTS, *self.recipes)}

    @cached_property
    def specs(self) -> Mapping[str, Setting]:
        """Every setting by name, the shared ones first."""
        found = {spec.name: spec for spec in declared_settings(SharedSettings)}
        for system in self.systems:
            if system.settings is not None:
                found |= {spec.name: spec for spec in declared_settings(system.settings, system.name)}
        return {name: spec.extended(self.choices.get(name, ())) for name, spec in found.items()}

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage once, in the order of declaration."""
        return tuple({stage.name: stage for system in self.systems for stage in system.stages}.values())

    @cached_property
    def channels(self) -> Mapping[str, Channel]:
        """By name."""
        return {channel.name: channel for system in self.systems for channel in system.channels}

    @cached_property
    def recipes(self) -> Mapping[str, Recipe]:
        """The modes, by name."""
        return {name: recipe for system in self.systems for name, recipe in system.recipes.items()}

    @cached_property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        """What `--system` takes: each a row of settings."""
        return {name: row for system in self.systems for name, row in system.presets.items()}

    @cached_property
    def preset_owners(self) -> Mapping[str, str]:
        """The system of each preset, by the name of the preset."""
        return {name: system.name for system in self.systems for name in system.presets}

    @cached_property
    def table(self) -> PresetTable:
        """The presets, for those who resolve settings."""
        return PresetTable(self.presets, self.broken)

    def system_of(self, mode: str) -> System:
        """The system that lists a mode."""
        return next(system for system in self.systems if mode in system.recipes)

    def outside(self, stage: Stage) -> str | None:
        """The system of another package that declares a stage; None for those of this package."""
        found = next((system for system in self.systems if stage in system.stages), None)
        return None if found is None or self.origins.get(found.name) == OWN else found.name

    def check(self, settings: Settings) -> None:
        """ConfigError where settings do not go together."""
        for mode in settings.modes.split(","):
            if mode.strip() not in (*LISTS, *self.recipes):
                known = ", ".join([*LISTS, *self.recipes])
                hint = f"the modes are {known}{about_broken(self.broken)}"
                if near := suggest(mode.strip(), (*LISTS, *self.recipes)):
                    hint = f"{near} {hint}"
                raise ConfigError(f"modes: there is no mode {mode.strip()!r}", hint=hint)
        for system in self.systems:
            if system.check is None or not (
                self.origins.get(system.name) == OWN or _uses_system(system, settings)
            ):
                continue
            try:
                system.check(settings)
            except KetragError:
                raise
            except Exception as error:
                raise ExtensionError(
                    f"the check of the system {system.name} failed: {type(error).__name__}: {error}"
                ) from error

    def recipe(self, mode: str) -> Recipe:
        """The recipe of a mode; ConfigError where there is none of that name."""
        found = self.recipes.get(mode)
        if found is None:
            known = ", ".join(["auto", *self.recipes])
            hint = f"the modes are {known}{about_broken(self.broken)}"
            if near := suggest(str(mode), self.recipes):
                hint = f"{near} {hint}"
            raise ConfigError(f"mode: there is no mode {mode!r}", hint=hint)
        return found


def _uses_system(system: System, settings: Settings) -> bool:
    """Whether these settings have anything to do with a system: its check may then refuse them."""
    modes = {settings.mode, *(mode.strip() for mode in settings.modes.split(","))}
    if settings.system in system.presets or modes & system.recipes.keys():
        return True
    own = fields(system.settings) if system.settings is not None else ()
    return any(settings.value(spec.name) != spec.default for spec in own)


@cache
def registry() -> Registry:
    """The systems of this process. Entry points are read once; `registry.cache_clear()` reads them anew.

    Those of this package are checked by a test, and not each time that a command starts.
    """
    own = [import_module(f"ketrag_fast.systems.{name}").SYSTEM for name in BUILT_IN]
    found = Registry(tuple(own), origins=dict.fromkeys((s.name for s in own), OWN))
    for origin, point in _entry_points():
        found = _add_system(found, origin, point)
    return found


def _entry_points() -> Iterable[tuple[str, metadata.EntryPoint]]:
    """(package, entry point), in the order of their names: the same everywhere."""
    if os.environ.get("KETRAG_EXTENSIONS", "").lower() in ("0", "none", "false"):
        return []
    if not _has_entry_points():
        return []
    from importlib import metadata  # reading all packages' metadata takes as long as a question

    points = metadata.entry_points(group=GROUP)
    return sorted(
        ((point.dist.name if point.dist is not None else "?", point) for point in points),
        key=lambda pair: (pair[1].name, pair[0]),
    )


def _has_entry_points() -> bool:
    """Whether some installed package may bring a system: a look at the files, for a tenth of the time."""
    mark = f"[{GROUP}]".encode()
    for place in dict.fromkeys(sys.path):
        folder = Path(place or ".")
        if folder.is_file():  # a zip: only importlib knows what is in it
            return True
        try:
            names = [
                entry.name for entry in os.scandir(folder) if entry.name.endswith(("-info", ".egg-info"))
            ]
        except OSError:
            continue
        for name in names:
            try:
                if mark in (folder / name / "entry_points.txt").read_bytes():
                    return True
            except OSError:
                continue
    return False


def _add_system(found: Registry, origin: str, point: metadata.EntryPoint) -> Registry:
    """The registry with one more system, or with one more that cannot be used."""
    try:
        system = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever another package raises when imported
        return _add_broken(found, point.name, f"{origin} cannot be loaded: {type(error).__name__}: {error}")
    try:
        if not isinstance(system, System):
            raise ExtensionError(f"{point.value} is no System")
        from ketrag_fast.systems.spec.validation import check_system

        check_system(found, system, outside=True)
        return Registry((*found.systems, system), found.broken, {**found.origins, system.name: origin})
    except KetragError as error:
        return _add_broken(found, _name_of(system, point), f"{origin}: {error.message}")
    except Exception as error:  # noqa: BLE001 - what it declares may be of any kind
        return _add_broken(found, _name_of(system, point), f"{origin}: {type(error).__name__}: {error}")


def _name_of(system: Any, point: metadata.EntryPoint) -> str:
    name = getattr(system, "name", None)
    return name if isinstance(name, str) else point.name


def _add_broken(found: Registry, name: str, reason: str) -> Registry:
    return Registry(found.systems, {**found.broken, name: reason}, found.origins)
