"""The registry of systems: the modules of this package, and systems of other packages.

Everything that depends on systems is derived from it: settings, options and their help, names of modes and
presets, statistics, the tables in docs/. Other packages provide systems through the entry point group
`ketrag_fast.systems` (docs/how-to/extending.md). A system that cannot be loaded is left out, and only code
that names it gets an error with the reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config.fields import Setting, declared_settings, suggest
from ketrag_fast.base.config.settings import about_broken
from ketrag_fast.base.config.shared import SharedSettings
from ketrag_fast.base.entry_points import entry_points
from ketrag_fast.errors import ConfigError, ExtensionError, KetragError
from ketrag_fast.records import dataclass, field, fields
from ketrag_fast.systems.spec.stage import Stage
from ketrag_fast.systems.spec.system import Channel, GraphSource, Recipe, System

if TYPE_CHECKING:
    from importlib import metadata

    from ketrag_fast.base.config import Settings

SUPPORT: Final = frozenset({"spec", "shared", "registry", "planning", "index_settings"})
"""The modules of this package that are not systems; each other module has a `SYSTEM`, or `SYSTEMS`."""
GROUP: Final = "ketrag_fast.systems"
OWN: Final = "ketrag-fast"
LISTS: Final = ("auto", "all")
"""The values of `modes` in addition to names of modes."""


class PresetTable(dict[str, Mapping[str, Any]]):
    """The presets by name. A missing name raises an error with the reason."""

    def __init__(self, systems: Sequence[System], broken: Mapping[str, str]) -> None:
        super().__init__({name: row for system in systems for name, row in system.presets.items()})
        self._systems, self._broken = systems, broken

    def __missing__(self, name: str) -> Mapping[str, Any]:
        if name in self._broken:
            raise ExtensionError(
                f"the system {name} cannot be used: {self._broken[name]}",
                hint="fix or uninstall the package that provides it",
            )
        rows = [f"{system.name}: {', '.join(system.presets)}" for system in self._systems if system.presets]
        hint = f"the presets by system are {'; '.join(rows)}{about_broken(self._broken)}"
        if near := suggest(str(name), self):
            hint = f"{near} {hint}"
        raise ConfigError(f"system: unknown system {name!r}", hint=hint)


@dataclass(frozen=True)
class Registry:
    """The usable systems and their declarations by name; `broken` holds the others with the reasons."""

    systems: tuple[System, ...]
    broken: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Iterator[tuple[str, type]]:
        """(name, class of settings) of each system that has settings."""
        return ((s.name, s.settings) for s in self.systems if s.settings is not None)

    @property
    def is_own(self) -> bool:
        """Whether no other package has added a system."""
        return not self.broken and all(origin == OWN for origin in self.origins.values())

    @cached_property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Values that systems add to settings."""
        found: dict[str, tuple[str, ...]] = {"mode": tuple(self.recipes)}
        for system in self.systems:
            for name, more in system.choices.items():
                found[name] = (*found.get(name, ()), *more)
        return found

    @cached_property
    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """Suggested values, for the help of settings that accept any text."""
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
        """Every channel by name."""
        return {channel.name: channel for system in self.systems for channel in system.channels}

    @cached_property
    def recipes(self) -> Mapping[str, Recipe]:
        """The modes, by name."""
        return {name: recipe for system in self.systems for name, recipe in system.recipes.items()}

    @cached_property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        """The presets that `--system` accepts: values of settings by name."""
        return self.table

    @cached_property
    def _variants(self) -> Mapping[str | None, Mapping[str, Any]]:
        """The rules by name under each preset; those of the default variants under None."""
        return {
            preset: {
                rule.name: getattr(system.rules.get(preset or "", system.rules[system.name]), rule.name)
                for system in self.systems
                if system.rules
                for rule in fields(system.rules[system.name])
            }
            for preset in (None, *self.presets)
        }

    def rules_of(self, preset: str) -> Mapping[str, Any]:
        """Return the rules of all systems by name, under a preset."""
        return self._variants.get(preset, self._variants[None])

    @cached_property
    def preset_owners(self) -> Mapping[str, str]:
        """The system of each preset, by the name of the preset."""
        return {name: system.name for system in self.systems for name in system.presets}

    @cached_property
    def graphs(self) -> Mapping[str, GraphSource]:
        """The graphs that are drawn and exported, by name, the default one first."""
        found = [graph for system in self.systems for graph in system.graphs]
        return {graph.name: graph for graph in sorted(found, key=lambda graph: (graph.order, graph.name))}

    @cached_property
    def table(self) -> PresetTable:
        """The presets, with errors for missing names."""
        return PresetTable(self.systems, self.broken)

    def system_of(self, mode: str) -> System:
        """Return the system that lists a mode."""
        return next(system for system in self.systems if mode in system.recipes)

    @cached_property
    def learning(self) -> Mapping[str, System]:
        """The systems that declare training, by name."""
        return {system.name: system for system in self.systems if system.train is not None}

    def trainable(self, name: str) -> System:
        """Return the system of this name; ConfigError if no system with training has it."""
        if name not in self.learning:
            raise ConfigError(
                f"train: {name!r} is not a system with training",
                hint="systems with training: " + (", ".join(self.learning) or "none"),
            )
        return self.learning[name]

    def outside(self, stage: Stage) -> str | None:
        """Return the system from another package that declares a stage; None for a built-in stage."""
        found = next((system for system in self.systems if stage in system.stages), None)
        return None if found is None or self.origins.get(found.name) == OWN else found.name

    def check(self, settings: Settings) -> None:
        """Raise ConfigError if settings contradict each other, or name an unknown language or mode."""
        check_language(settings.language)
        for name in settings.modes.split(","):
            mode = name.strip().removeprefix("+")
            if mode not in (*LISTS, *self.recipes):
                known = ", ".join([*LISTS, *self.recipes])
                hint = f"the modes are {known}{about_broken(self.broken)}"
                if near := suggest(mode, (*LISTS, *self.recipes)):
                    hint = f"{near} {hint}"
                raise ConfigError(f"modes: unknown mode {mode!r}", hint=hint)
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
        """Return the recipe of a mode; ConfigError if the mode does not exist."""
        found = self.recipes.get(mode)
        if found is None:
            known = ", ".join(["auto", *self.recipes])
            hint = f"the modes are {known}{about_broken(self.broken)}"
            if near := suggest(str(mode), self.recipes):
                hint = f"{near} {hint}"
            raise ConfigError(f"mode: unknown mode {mode!r}", hint=hint)
        return found


def _uses_system(system: System, settings: Settings) -> bool:
    """Return whether these settings use a system, so that its check applies."""
    modes = {settings.mode, *(mode.strip().removeprefix("+") for mode in settings.modes.split(","))}
    if settings.system in system.presets or modes & system.recipes.keys():
        return True
    own = fields(system.settings) if system.settings is not None else ()
    return any(settings.value(spec.name) != spec.default for spec in own)


@cache
def registry() -> Registry:
    """Return the systems available to this process; `registry.cache_clear()` makes it look again.

    A test checks the built-in systems, so that commands need not do so each time they start.
    """
    own = sorted(_built_in(), key=lambda system: (system.order, system.name))
    found = Registry(tuple(own), origins=dict.fromkeys((s.name for s in own), OWN))
    for origin, point in entry_points(GROUP):
        found = _add_system(found, origin, point)
    return found


def _built_in() -> Iterator[System]:
    """Yield the systems of this package, which are declared by each module that is not one of `SUPPORT`."""
    package = __name__.rpartition(".")[0]
    for name in _modules(sys.modules[package].__path__):
        if name not in SUPPORT:
            module = import_module(f"{package}.{name}")
            yield from getattr(module, "SYSTEMS", None) or (module.SYSTEM,)


def _modules(folders: Iterable[str]) -> set[str]:
    """Return the names of the modules in folders; `pkgutil` imports `inspect` to find the same."""
    found = set()
    for folder in folders:
        try:
            entries = list(os.scandir(folder))
        except OSError:  # the package is in a zip file
            from pkgutil import iter_modules

            return {one.name for one in iter_modules(list(folders))}
        for entry in entries:
            name, dot, suffix = entry.name.partition(".")
            is_package = not dot and os.path.isfile(f"{entry.path}/__init__.py")  # noqa: PTH113 - of a text
            if suffix in ("py", "pyc") or is_package:
                found.add(name)
    return found - {"__init__"}


def _add_system(found: Registry, origin: str, point: metadata.EntryPoint) -> Registry:
    """Return the registry with one more system, usable or broken."""
    try:
        system = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing another package may raise anything
        return _add_broken(found, point.name, f"{origin} cannot be loaded: {type(error).__name__}: {error}")
    try:
        if not isinstance(system, System):
            raise ExtensionError(f"{point.value} is not a System")
        from ketrag_fast.systems.spec.validation import check_system

        check_system(found, system, outside=True)
        return Registry((*found.systems, system), found.broken, {**found.origins, system.name: origin})
    except KetragError as error:
        return _add_broken(found, _name_of(system, point), f"{origin}: {error.message}")
    except Exception as error:  # noqa: BLE001 - its declarations may be of any type
        return _add_broken(found, _name_of(system, point), f"{origin}: {type(error).__name__}: {error}")


def _name_of(system: Any, point: metadata.EntryPoint) -> str:
    name = getattr(system, "name", None)
    return name if isinstance(name, str) else point.name


def _add_broken(found: Registry, name: str, reason: str) -> Registry:
    return Registry(found.systems, {**found.broken, name: reason}, found.origins)


def check_language(name: str) -> None:
    """Raise ConfigError unless the name is `auto`, `none`, or a language or its code."""
    if name in ("auto", "none", "english", "en"):
        return  # without importing the core
    from ketrag_fast import _core

    known = {"auto", *(value for row in _core.languages() for value in row)}
    if name not in known:
        raise ConfigError(
            f"language: {name[:80]!r} is not auto, none or a known language",
            hint=suggest(name, sorted(known)) or "see docs/reference/languages.md; auto detects it",
        )
