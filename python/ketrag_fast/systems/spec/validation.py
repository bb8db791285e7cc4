"""Whether what a system declares holds together, and takes no name of another's.

All of this is looked at when a system is loaded, so that a mistake is met once, by its author, and not by
whoever builds or asks later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from ketrag_fast.base.config import Setting, Settings
from ketrag_fast.base.config.fields import declared_settings
from ketrag_fast.base.config.sources import OTHER_VARIABLES, PREFIX
from ketrag_fast.errors import ConfigError, ExtensionError
from ketrag_fast.systems.spec.arrays import ArraySpec
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage
from ketrag_fast.systems.spec.system import JOINS, REST, Channel, Recipe, System

LISTS: Final = ("auto", "all")
"""What the setting `modes` takes beside names of modes."""
_WORDS: Final = """
allow_host allow_origin allow_write answer_queue answer_seconds answer_tokens answer_with answers apart
batch bertscore build builds cache_mb calls characters compare concatenate concurrency config count
document documents dry_run endpoint epochs explain first forget grid heads help hidden host html http
index json judge keep kind max_body max_budget max_connections max_questions option out output port prefer
prices progress publish_partial purge queries questions queue quiet rate rebuild replace request_seconds
sample save settle share shared spend substring systems texts token_file vary verbose version with_model
workers
"""
OPTIONS: Final = frozenset(_WORDS.split())
"""Options of the command that are no settings: a setting cannot have their names."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*")


class Declared(Protocol):
    """What the systems before have declared."""

    @property
    def systems(self) -> Sequence[System]:
        """All of them."""

    @property
    def specs(self) -> Mapping[str, Setting]:
        """Their settings and the shared ones."""

    @property
    def stages(self) -> Sequence[Stage]:
        """Each once."""

    @property
    def channels(self) -> Mapping[str, Channel]:
        """By name."""

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """By name."""

    @property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        """By name."""


def check_system(before: Declared, system: System, *, outside: bool) -> None:
    """ExtensionError where a name is taken or what is declared does not hold together.

    A system from `outside` has nothing in the core: its channels are functions.
    """
    _names("system", [s.name for s in before.systems], [system.name])
    own = _own_settings(before, system)
    specs = {**before.specs, **own}
    _check_choices(system, specs)
    specs |= {name: specs[name].extended(more) for name, more in system.choices.items()}
    _check_stages(before, system, specs)
    _names("channel", before.channels, [channel.name for channel in system.channels])
    for channel in system.channels:
        _check_channel(channel, specs, outside=outside)
    _names("mode", [*before.recipes, *LISTS], system.recipes)
    channels = {**before.channels, **{channel.name: channel for channel in system.channels}}
    for name, recipe in system.recipes.items():
        _check_recipe(name, recipe, channels, specs)
    _names("preset", before.presets, system.presets)
    modes = (*LISTS, *before.recipes, *system.recipes)
    for name, row in system.presets.items():
        _check_preset(name, row, specs, modes)


def _names(what: str, taken: Iterable[str], names: Iterable[str]) -> None:
    """ExtensionError where one is taken, comes twice or is no name."""
    known = set(taken)
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ExtensionError(f"{name!r} is no name for a {what}", hint="letters, digits, - _ .")
        if name in known:
            raise ExtensionError(f"the {what} {name} is there already")
        known.add(name)


def _own_settings(before: Declared, system: System) -> dict[str, Setting]:
    if system.settings is None:
        return {}
    found: dict[str, Setting] = {}
    reserved = OPTIONS | {variable.removeprefix(PREFIX).lower() for variable in OTHER_VARIABLES}
    for spec in declared_settings(system.settings, system.name):
        other = before.specs.get(spec.name)
        if other is not None:
            owner = f"a setting of {other.owner}" if other.owner else "a setting of all systems"
            raise ExtensionError(f"the setting {spec.name} is {owner} already")
        if not _PLAIN.fullmatch(spec.name) or spec.name in reserved or hasattr(Settings, spec.name):
            raise ExtensionError(f"no setting can have the name {spec.name}")
        found[spec.name] = spec
    return found


def _check_choices(system: System, specs: Mapping[str, Setting]) -> None:
    for name, more in system.choices.items():
        if name not in specs or not specs[name].choices or name == "mode":
            raise ExtensionError(f"the setting {name} is not open to further values")
        if not all(isinstance(value, str) and value for value in more):
            raise ExtensionError(f"further values of the setting {name} must be texts")


def _check_stages(before: Declared, system: System, specs: Mapping[str, Setting]) -> None:
    known = {stage.name: stage for stage in before.stages}
    labels = {label for stage in before.stages for label in (*stage.counts, *stage.edges)}
    lists = {stage.proposes[0] for stage in before.stages if stage.proposes is not None}
    for stage in system.stages:
        if known.get(stage.name) is stage:
            continue  # shared
        if stage.name in known:
            raise ExtensionError(f"the stage {stage.name} is there already")
        if not stage.name.isidentifier() or stage.name == DOCUMENTS:
            raise ExtensionError(f"{stage.name!r} is no name for a stage")
        known[stage.name] = stage
        where = f"the stage {stage.name}"
        _check_needs(where, stage.needs)
        _check_names_of(where, stage.settings, specs, "build")
        if stage.arrays is None:
            raise ExtensionError(f"{where} declares no arrays")
        for name, array in stage.arrays.items():
            if not _PLAIN.fullmatch(name) or not isinstance(array, ArraySpec):
                raise ExtensionError(
                    f"{where} declares {name!r}, which is no array", hint="array(type, shape)"
                )
        if stage.chosen_by is not None:
            setting, value = stage.chosen_by
            if setting not in specs or value not in specs[setting].choices:
                raise ExtensionError(f"{where} is chosen by {setting} = {value}, which there is not")
        unmade = [array for array, _ in stage.edges.values() if array not in stage.arrays]
        if unmade:
            raise ExtensionError(f"{where} counts edges by {unmade[0]}, which it does not make")
        # Stages that stand in one place count one thing: only one of them is in an index.
        beside = {
            label
            for other in before.stages
            if other.slot == stage.slot
            for label in (*other.counts, *other.edges)
        }
        taken = (labels - beside) & {*stage.counts, *stage.edges}
        if taken:
            raise ExtensionError(f"{where} counts {min(taken)}, which another stage does already")
        if stage.proposes is not None and stage.proposes[0] in lists:
            raise ExtensionError(f"{where} searches {stage.proposes[0]}, which another stage does already")


def _check_channel(channel: Channel, specs: Mapping[str, Setting], *, outside: bool) -> None:
    where = f"the channel {channel.name}"
    _check_needs(where, channel.needs)
    _check_names_of(where, channel.settings, specs, "query")
    if outside and channel.rank is None:
        raise ExtensionError(f"{where} has no function that ranks")
    if channel.vector not in ("no", "model", "yes"):
        raise ExtensionError(f"{where} has vector={channel.vector!r}", hint="no, model or yes")


def _check_needs(where: str, needs: Any) -> None:
    if callable(needs):
        return
    if not isinstance(needs, tuple) or not all(isinstance(need, str) for need in needs):
        raise ExtensionError(f"{where} needs {needs!r}", hint='a tuple of names, such as ("links",)')


def _check_names_of(where: str, names: Any, specs: Mapping[str, Setting], concern: str) -> None:
    if not isinstance(names, tuple):
        raise ExtensionError(f"{where} reads the settings {names!r}", hint="a tuple of names is needed")
    for name in names:
        if name not in specs:
            raise ExtensionError(f"{where} reads the setting {name}, which there is not")
        if specs[name].concerns != concern:
            raise ExtensionError(
                f"{where} reads the setting {name}, which is one of concerns={specs[name].concerns!r}",
                hint=f"it must be one of concerns={concern!r}",
            )


def _check_recipe(
    name: str, recipe: Recipe, channels: Mapping[str, Channel], specs: Mapping[str, Setting]
) -> None:
    where = f"the mode {name}"
    if not recipe.shares:
        raise ExtensionError(f"{where} has no channel")
    if recipe.join not in JOINS:
        raise ExtensionError(f"{where} joins by {recipe.join!r}", hint="one of " + ", ".join(JOINS))
    if not isinstance(recipe.automatic, (int, type(None))):
        raise ExtensionError(f"{where} has automatic={recipe.automatic!r}, which is no whole number")
    if recipe.rollover is not None and recipe.rollover not in specs:
        raise ExtensionError(f"{where} reads the setting {recipe.rollover}, which there is not")
    total = 0.0
    for place, share in enumerate(recipe.shares):
        if share.channel not in channels:
            raise ExtensionError(f"{where} takes a channel {share.channel} that there is not")
        if share.of == REST:
            if place != len(recipe.shares) - 1:
                raise ExtensionError(f"{where} gives the rest to a channel that is not the last")
        elif isinstance(share.of, str):
            spec = specs.get(share.of)
            if spec is None or float not in spec.types or spec.low is None or spec.high is None:
                raise ExtensionError(f"{where} has a share by {share.of}, which is no setting from 0 to 1")
            if spec.low < 0 or spec.high > 1:
                raise ExtensionError(f"{where} has a share by {share.of}, which goes beyond 0 to 1")
        elif recipe.join == "shares":
            if not 0 <= share.of <= 1:
                raise ExtensionError(f"{where} gives {share.channel} a share of {share.of}")
            total += share.of
    if total > 1 + 1e-9:
        raise ExtensionError(f"the shares of {where} add up to {total:g}, which exceeds 1")
    if len({share.channel for share in recipe.shares}) < len(recipe.shares):
        raise ExtensionError(f"{where} takes a channel twice")


def _check_preset(
    name: str, row: Mapping[str, Any], specs: Mapping[str, Setting], modes: Sequence[str]
) -> None:
    where = f"the preset {name}"
    for setting, value in row.items():
        if setting not in specs or setting == "system":
            raise ExtensionError(f"{where} sets {setting}, which is no setting")
        wanted = [m.strip() for m in str(value).split(",")] if setting == "modes" else []
        wanted += [value] if setting == "mode" else []
        unknown = [mode for mode in wanted if mode not in modes]
        if unknown:
            raise ExtensionError(f"{where} has a mode {unknown[0]} that there is not")
        try:
            if setting != "mode":  # its choices are the modes, which were looked at
                specs[setting].check(value)
        except ConfigError as error:
            raise ExtensionError(f"{where} sets {error.message}") from None
