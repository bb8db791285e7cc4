"""All settings that there are: the shared ones, then those that each system declares."""

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
"""Read by name and when it is first needed, because systems stand above settings: whoever wants to know a
setting's name must know the systems, and systems are plug-ins."""


class Declares(Protocol):
    """What the registry of systems says about settings."""

    @property
    def settings(self) -> Iterable[tuple[str, type]]:
        """(system, its class of settings)."""

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Further values of settings that are open to systems: their modes, their ways to choose."""

    @property
    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """Values worth listing in the help of settings that take any text: presets, lists of modes."""

    @property
    def broken(self) -> Mapping[str, str]:
        """Systems that cannot be used, and why."""

    def check(self, settings: Any) -> None:
        """ConfigError where settings do not go together."""


def systems() -> Declares:
    """What the systems say."""
    found: Declares = import_module(_REGISTRY).registry()
    return found


@cache
def catalogue() -> Catalogue:
    """Every setting by name, the shared ones first."""
    registry = systems()
    found = {spec.name: spec for spec in declared_settings(SharedSettings)}
    for owner, cls in registry.settings:
        found |= {spec.name: spec for spec in declared_settings(cls, owner)}
    for name, more in registry.choices.items():
        found[name] = found[name].extended(more)
    return found


def names(*concerns: Concern) -> tuple[str, ...]:
    """The settings that concern these, in the order of the catalogue; all with no argument."""
    return tuple(n for n, spec in catalogue().items() if not concerns or spec.concerns in concerns)


def of_topic(*topics: Topic) -> tuple[str, ...]:
    """The settings of these topics, in the order of the catalogue."""
    return tuple(n for n, spec in catalogue().items() if spec.topic in topics)


def find_setting(name: str, where: str = "") -> str:
    """The setting of that name (`-` and `_` alike), or a ConfigError with the nearest one."""
    plain = name.strip().lower().replace("-", "_")
    if plain in catalogue():
        return plain
    from difflib import get_close_matches  # here, so that `--help` does not wait for it

    near = get_close_matches(plain, catalogue(), 1)
    hint = f"did you mean {near[0]}?" if near else "`ketrag config show` lists all settings"
    raise ConfigError(f"there is no setting {name!r}{where}", hint=hint + about_broken(systems().broken))


def about_broken(broken: Mapping[str, str]) -> str:
    """What to add to a hint about a name that there is not: a system that cannot be used may have it."""
    return "".join(f"; the system {name} cannot be used: {reason}" for name, reason in broken.items())


def parse(name: str, text: str) -> Any:
    """The value that a setting gets from text (an environment variable)."""
    return catalogue()[name].parse(text)
