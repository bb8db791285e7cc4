"""The catalogue of settings: the shared ones, then those that each system declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from ketrag_fast.base.config.fields import Concern, Setting, Topic, declared_settings
from ketrag_fast.base.config.shared import SharedSettings
from ketrag_fast.errors import ConfigError

Catalogue = Mapping[str, Setting]

_REGISTRY = "ketrag_fast.systems.registry"
"""Imported by name on first use, because systems depend on settings while the names of settings depend on
the systems, which are plug-ins."""


class Declares(Protocol):
    """The part of the registry of systems that is about settings."""

    @property
    def settings(self) -> Iterable[tuple[str, type]]:
        """(system, its settings class) for each system."""

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Additional values of settings that systems extend: their modes, their selection methods."""

    @property
    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """Values shown in the help of settings that take any text: presets, lists of modes."""

    @property
    def broken(self) -> Mapping[str, str]:
        """Systems that cannot be used, and why."""

    def check(self, settings: Any) -> None:
        """Raise ConfigError if settings contradict each other."""


def systems() -> Declares:
    """Return the registry of systems."""
    found: Declares = import_module(_REGISTRY).registry()
    return found


@cache
def catalogue() -> Catalogue:
    """Return every setting by name, the shared ones first."""
    registry = systems()
    found = {spec.name: spec for spec in declared_settings(SharedSettings)}
    for owner, cls in registry.settings:
        found |= {spec.name: spec for spec in declared_settings(cls, owner)}
    for name, more in registry.choices.items():
        found[name] = found[name].extended(more)
    return found


def names(*concerns: Concern) -> tuple[str, ...]:
    """Return the settings of these concerns, in catalogue order; all without an argument."""
    return tuple(n for n, spec in catalogue().items() if not concerns or spec.concerns in concerns)


def of_topic(*topics: Topic) -> tuple[str, ...]:
    """Return the settings of these topics, in catalogue order."""
    return tuple(n for n, spec in catalogue().items() if spec.topic in topics)


def find_setting(name: str, where: str = "") -> str:
    """Return the setting's name (`-` and `_` alike), or raise a ConfigError with the nearest one."""
    plain = name.strip().lower().replace("-", "_")
    if plain in catalogue():
        return plain
    from difflib import get_close_matches  # imported here to keep `--help` fast

    near = get_close_matches(plain, catalogue(), 1)
    hint = f"did you mean {near[0]}?" if near else "`ketrag config show` lists all settings"
    raise ConfigError(f"unknown setting {name!r}{where}", hint=hint + about_broken(systems().broken))


def about_broken(broken: Mapping[str, str]) -> str:
    """Return a hint suffix for an unknown name: a system that cannot be loaded may declare it."""
    return "".join(f"; the system {name} cannot be used: {reason}" for name, reason in broken.items())


def parse(name: str, text: str) -> Any:
    """Return the value of a setting from text (an environment variable)."""
    return catalogue()[name].parse(text)
