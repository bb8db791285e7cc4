"""Which systems there are: those of the package, and what other packages bring.

Whatever depends on systems is made from here: settings, the command's options and their help, the names of
modes and presets, statistics, the tables in docs/. A package brings a system through the entry point group
`ketrag_fast.systems` (docs/extending.md). One that cannot be used is left out with the reason, and the rest
of the package is unharmed: only who names it meets the error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.config.fields import declared
from ketrag_fast.config.shared import SharedSettings
from ketrag_fast.declarations.stage import DOCUMENTS, Stage
from ketrag_fast.declarations.system import REST, Channel, Recipe, System
from ketrag_fast.errors import ConfigError, ExtensionError, KetragError

if TYPE_CHECKING:
    from ketrag_fast.config import Settings

BUILT_IN: Final = ("plain", "walk", "ket_rag", "g2cons")
"""Modules of this package, in the order in which modes and settings are listed."""
GROUP: Final = "ketrag_fast.systems"
_LISTS: Final = ("auto", "all")
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
        raise ConfigError(
            f"system: there is no system {name!r}", hint="the systems are " + ", ".join(sorted(self))
        )


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
        return {"system": tuple(self.presets), "modes": (*_LISTS, *self.recipes)}

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
    def table(self) -> PresetTable:
        """The presets, for those who resolve settings."""
        return PresetTable(self.presets, self.broken)

    def system_of(self, mode: str) -> System:
        """The system that lists a mode."""
        return next(system for system in self.systems if mode in system.recipes)

    def check(self, settings: Settings) -> None:
        """ConfigError where settings do not go together."""
        for mode in settings.modes.split(","):
            if mode.strip() not in (*_LISTS, *self.recipes):
                known = ", ".join([*_LISTS, *self.recipes])
                raise ConfigError(f"modes: there is no mode {mode.strip()!r}", hint=f"the modes are {known}")
        for system in self.systems:
            if system.check is not None:
                system.check(settings)

    def recipe(self, mode: str) -> Recipe:
        """The recipe of a mode; ConfigError where there is none of that name."""
        found = self.recipes.get(mode)
        if found is None:
            known = ", ".join(["auto", *self.recipes])
            raise ConfigError(f"mode: there is no mode {mode!r}", hint=f"the modes are {known}")
        return found


@cache
def registry() -> Registry:
    """The systems of this process. Entry points are read once; `registry.cache_clear()` reads them anew."""
    own = [import_module(f"ketrag_fast.systems.{name}").SYSTEM for name in BUILT_IN]
    found = Registry(tuple(own), origins=dict.fromkeys((s.name for s in own), "ketrag-fast"))
    _check_own(found)
    for origin, point in _entry_points():
        found = _with(found, origin, point)
    return found


def _entry_points() -> Iterable[tuple[str, metadata.EntryPoint]]:
    """(package, entry point), in the order of their names: the same everywhere."""
    if os.environ.get("KETRAG_EXTENSIONS", "").lower() in ("0", "none", "false"):
        return []
    points = metadata.entry_points(group=GROUP)
    return sorted(
        ((point.dist.name if point.dist is not None else "?", point) for point in points),
        key=lambda pair: (pair[1].name, pair[0]),
    )


def _with(found: Registry, origin: str, point: metadata.EntryPoint) -> Registry:
    """The registry with one more system, or with one more that cannot be used."""
    try:
        system = point.load()
    except Exception as error:  # noqa: BLE001 - whatever another package raises while it is imported
        return _broken(found, point.name, f"{origin} cannot be loaded: {type(error).__name__}: {error}")
    try:
        if not isinstance(system, System):
            raise ExtensionError(f"{point.value} is no System")
        more = Registry((*found.systems, system), found.broken, {**found.origins, system.name: origin})
        _check_new(found, system)
        return more
    except KetragError as error:
        return _broken(found, getattr(system, "name", point.name), f"{origin}: {error.message}")
    except Exception as error:  # noqa: BLE001 - what it declares may be of any kind
        return _broken(found, point.name, f"{origin}: {type(error).__name__}: {error}")


def _broken(found: Registry, name: str, reason: str) -> Registry:
    return Registry(found.systems, {**found.broken, str(name): reason}, found.origins)


def _check_own(found: Registry) -> None:
    before = Registry(())
    for system in found.systems:
        _check_new(before, system)
        before = Registry((*before.systems, system))


def _check_new(before: Registry, system: System) -> None:
    """ExtensionError where a name is taken or what is declared does not hold together."""
    if system.name in {s.name for s in before.systems}:
        raise ExtensionError(f"there is a system {system.name} already")
    _check_settings(before, system)
    shared = {stage.name: stage for stage in before.stages}
    for stage in system.stages:
        if shared.get(stage.name, stage) is not stage:
            raise ExtensionError(f"the stage {stage.name} is another system's already")
        if not stage.name.isidentifier() or stage.name == DOCUMENTS:
            raise ExtensionError(f"{stage.name!r} is no name for a stage")
        if stage.arrays is None:
            raise ExtensionError(f"the stage {stage.name} declares no arrays")
    _taken("channel", before.channels, [channel.name for channel in system.channels])
    _taken("mode", {**before.recipes, "auto": None}, system.recipes)
    _taken("preset", before.presets, system.presets)
    channels = {**before.channels, **{channel.name: channel for channel in system.channels}}
    for name, recipe in system.recipes.items():
        _check_recipe(name, recipe, channels)


def _check_settings(before: Registry, system: System) -> None:
    if system.settings is None:
        return
    taken = {spec.name: "shared" for spec in declared(SharedSettings)}
    taken |= {spec.name: owner for owner, cls in before.settings for spec in fields(cls)}
    for spec in declared(system.settings, system.name):
        if spec.name in taken:
            raise ExtensionError(f"the setting {spec.name} is {taken[spec.name]}'s already")


def _taken(what: str, before: Iterable[str], names: Iterable[str]) -> None:
    known = set(before)
    for name in names:
        if name in known:
            raise ExtensionError(f"the {what} {name} is another system's already")


def _check_recipe(name: str, recipe: Recipe, channels: Mapping[str, Channel]) -> None:
    if not recipe.shares:
        raise ExtensionError(f"the mode {name} has no channel")
    total = 0.0
    for place, share in enumerate(recipe.shares):
        if share.channel not in channels:
            raise ExtensionError(f"the mode {name} takes a channel {share.channel} that there is not")
        if share.of == REST and place != len(recipe.shares) - 1:
            raise ExtensionError(f"the mode {name} gives the rest to a channel that is not the last")
        if isinstance(share.of, (int, float)) and recipe.join == "shares":
            if not 0 <= share.of <= 1:
                raise ExtensionError(f"the mode {name} gives {share.channel} a share of {share.of}")
            total += share.of
    if total > 1 + 1e-9:
        raise ExtensionError(f"the shares of the mode {name} add up to {total:g}, which exceeds 1")
