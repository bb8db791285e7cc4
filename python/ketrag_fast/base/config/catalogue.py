"""All settings: the shared ones, then those that each system declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from ketrag_fast.base.config.fields import Concern, Setting, Topic, declared_settings, suggest
from ketrag_fast.base.config.shared import SharedSettings
from ketrag_fast.errors import ConfigError

Catalogue = Mapping[str, Setting]

_REGISTRY = "ketrag_fast.systems.registry"
"""Imported by name on first use, because systems are in a higher layer and declare settings themselves."""


class Declares(Protocol):
    """The interface of the system registry that settings need."""

    @property
    def settings(self) -> Iterable[tuple[str, type]]:
        """Pairs of a system's name and its settings class."""

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Choices that systems add to settings, such as their modes."""

    @property
    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """Values to list in the help of free-text settings, such as presets and modes."""

    @property
    def preset_owners(self) -> Mapping[str, str]:
        """The system of each preset."""

    @property
    def broken(self) -> Mapping[str, str]:
        """Systems that failed to load, with the reasons."""

    def rules_of(self, preset: str) -> Mapping[str, Any]:
        """Return the rules of all systems by name, under a preset."""

    def check(self, settings: Any) -> None:
        """Raise ConfigError if settings contradict each other."""


def systems() -> Declares:
    """Return the registry of systems."""
    registry: Declares = import_module(_REGISTRY).registry()
    return registry


@cache
def catalogue() -> Catalogue:
    """Return every setting by name, the shared ones first."""
    registry = systems()
    specs = {spec.name: spec for spec in declared_settings(SharedSettings)}
    for owner, cls in registry.settings:
        specs |= {spec.name: spec for spec in declared_settings(cls, owner)}
    for name, more in registry.choices.items():
        specs[name] = specs[name].extended(more)
    return specs


def names(*concerns: Concern) -> tuple[str, ...]:
    """Return the names of the settings with these `concerns`; without arguments, of all settings."""
    return tuple(n for n, spec in catalogue().items() if not concerns or spec.concerns in concerns)


def of_topic(*topics: Topic) -> tuple[str, ...]:
    """Return the names of the settings of these topics, in the order of the catalogue."""
    return tuple(n for n, spec in catalogue().items() if spec.topic in topics)


def find_setting(name: str, where: str = "") -> str:
    """Return the canonical name of a setting (`-` equals `_`). Raises ConfigError with the closest name."""
    plain = name.strip().lower().replace("-", "_")
    if plain in catalogue():
        return plain
    hint = suggest(plain, catalogue()) or "`ketrag config list` lists all settings"
    raise ConfigError(f"unknown setting {name!r}{where}", hint=hint + about_broken(systems().broken))


def about_broken(broken: Mapping[str, str]) -> str:
    """Return the end of a hint for an unknown setting, which a system that failed to load may declare."""
    return "".join(f"; the system {name} cannot be used: {reason}" for name, reason in broken.items())


def parse(name: str, text: str) -> Any:
    """Parse the value of a setting from text, for example of an environment variable."""
    return catalogue()[name].parse(text)
