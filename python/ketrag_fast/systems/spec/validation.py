"""Validation of a system's declarations when it is loaded.

Mistakes are reported to the author of a system when it loads, not to its users in a later build or query.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from ketrag_fast.base.config import Setting, Settings
from ketrag_fast.base.config.fields import declared_settings
from ketrag_fast.base.config.settings import OTHER_VARIABLES, PREFIX
from ketrag_fast.errors import ConfigError, ExtensionError
from ketrag_fast.records import fields, is_dataclass
from ketrag_fast.systems.spec.arrays import ArraySpec
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage
from ketrag_fast.systems.spec.system import JOINS, REST, Channel, GraphSource, Recipe, System

LISTS: Final = ("auto", "all")
"""The values of the setting `modes` in addition to names of modes."""
_WORDS: Final = """
    allow_copies allow_host allow_origin allow_write answer_queue answer_seconds answer_tokens answer_with
    answers apart batch bertscore build builds cache_mb characters check collection communities
    compare concurrency config continue count depth documents dry_run endpoint epochs examples
    explain files first fixed forget fresh glob graph grep grid heads help hop hops host html http
    ignore_case index install json judge keep keep_shards kind layout limit literal log
    log_questions max_body max_budget max_connections max_questions may name neighbourhood on only
    option out outline port prefer prices print problems progress publish_partial purge queries
    query questions queue quiet quotes rate rebuild related remove replace request_seconds save
    schema settings settle shards share shared slow_seconds sources stale substring summarise survey
    systems token_file tokens user users vary verbose version with_model words workers yes
"""
OPTIONS: Final = frozenset(_WORDS.split())
"""Options of the command that are not settings; no setting can have these names."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PRESET: Final = re.compile(_NAME.pattern + "(:reference)?")
_PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*")


class Declared(Protocol):
    """The declarations of the systems loaded so far."""

    @property
    def systems(self) -> Sequence[System]:
        """The systems."""

    @property
    def specs(self) -> Mapping[str, Setting]:
        """Their settings and the shared ones, by name."""

    @property
    def stages(self) -> Sequence[Stage]:
        """Their stages, each once."""

    @property
    def channels(self) -> Mapping[str, Channel]:
        """The channels of the systems, by name."""

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """The recipes (modes), by name."""

    @property
    def graphs(self) -> Mapping[str, GraphSource]:
        """The graphs of the systems, by name."""

    @property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        """The presets of the systems, by name."""


def check_system(before: Declared, system: System, *, outside: bool) -> None:
    """Raise ExtensionError if a name is taken or the declarations are inconsistent.

    The channels of a system from another package (`outside`) must be Python functions.
    """
    _names("system", [s.name for s in before.systems], [system.name])
    own = _own_settings(before, system)
    specs = {**before.specs, **own}
    _check_choices(system, specs)
    specs |= {name: specs[name].extended(more) for name, more in system.choices.items()}
    _check_rules(before, system, specs)
    _check_stages(before, system, specs)
    _names("channel", before.channels, [channel.name for channel in system.channels])
    for channel in system.channels:
        _check_channel(channel, specs, outside=outside)
    _names("mode", [*before.recipes, *LISTS], system.recipes)
    channels = {**before.channels, **{channel.name: channel for channel in system.channels}}
    for name, recipe in system.recipes.items():
        _check_recipe(name, recipe, channels, specs, _rules_of([*before.systems, system]))
    _names("graph", before.graphs, [graph.name for graph in system.graphs])
    _names("preset", before.presets, system.presets, _PRESET)
    modes = (*LISTS, *before.recipes, *system.recipes)
    for name, row in system.presets.items():
        _check_preset(name, row, specs, modes)


def _names(what: str, taken: Iterable[str], names: Iterable[str], form: re.Pattern[str] = _NAME) -> None:
    """Raise ExtensionError if a name is taken, repeated or invalid."""
    known = set(taken)
    for name in names:
        if not isinstance(name, str) or not form.fullmatch(name):
            raise ExtensionError(
                f"invalid name {name!r} for a {what}",
                hint="use letters, digits, hyphens, underscores and dots",
            )
        if name in known:
            raise ExtensionError(f"the {what} {name} already exists")
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
            raise ExtensionError(f"the setting {spec.name} is already {owner}")
        if not _PLAIN.fullmatch(spec.name) or spec.name in reserved or hasattr(Settings, spec.name):
            raise ExtensionError(f"the setting name {spec.name} is invalid or reserved")
        found[spec.name] = spec
    return found


def _check_choices(system: System, specs: Mapping[str, Setting]) -> None:
    for name, more in system.choices.items():
        if name not in specs or not specs[name].choices or name == "mode":
            raise ExtensionError(f"the setting {name} does not allow further values")
        if not all(isinstance(value, str) and value for value in more):
            raise ExtensionError(f"further values of the setting {name} must be non-empty strings")


def _rules_of(systems: Iterable[System]) -> set[str]:
    return {rule.name for system in systems for record in system.rules.values() for rule in fields(record)}


def _check_rules(before: Declared, system: System, specs: Mapping[str, Setting]) -> None:
    """Raise ExtensionError unless the rules are one record for each of some presets, with new names."""
    if not system.rules:
        return
    where = f"the rules of {system.name}"
    absent = [name for name in (system.name, *system.rules) if name not in system.presets]
    if absent or system.name not in system.rules:
        raise ExtensionError(f"{where} lack the preset {[*absent, system.name][0]}")
    records = list(system.rules.values())
    if not is_dataclass(records[0]) or len({type(record) for record in records}) > 1:
        raise ExtensionError(f"{where} must be records of one dataclass")
    for name in _rules_of([system]):
        if name in specs or name in _rules_of(before.systems) or hasattr(Settings, name):
            raise ExtensionError(f"the name of the rule {name} is taken or reserved")


def _check_stages(before: Declared, system: System, specs: Mapping[str, Setting]) -> None:
    known = {stage.name: stage for stage in before.stages}
    rules = _rules_of([*before.systems, system])
    labels = {label for stage in before.stages for label in (*stage.counts, *stage.edges)}
    lists = {stage.proposes[0] for stage in before.stages if stage.proposes is not None}
    for stage in system.stages:
        if known.get(stage.name) is stage:
            continue  # shared
        if stage.name in known:
            raise ExtensionError(f"the stage {stage.name} already exists")
        if not stage.name.isidentifier() or stage.name == DOCUMENTS:
            raise ExtensionError(f"invalid name {stage.name!r} for a stage")
        known[stage.name] = stage
        where = f"the stage {stage.name}"
        _check_needs(where, stage.needs)
        _check_names_of(where, stage.settings, specs, "build", rules)
        if stage.arrays is None:
            raise ExtensionError(f"{where} declares no arrays")
        for name, array in stage.arrays.items():
            if not _PLAIN.fullmatch(name) or not isinstance(array, ArraySpec):
                raise ExtensionError(
                    f"{where} declares {name!r}, which is not an array", hint="use array(type, shape)"
                )
        if stage.chosen_by is not None:
            setting, value = stage.chosen_by
            if setting not in specs or value not in specs[setting].choices:
                raise ExtensionError(f"{where} is chosen by {setting} = {value}, which does not exist")
        unmade = [array for array, _ in stage.edges.values() if array not in stage.arrays]
        if unmade:
            raise ExtensionError(f"{where} counts edges by {unmade[0]}, which it does not declare")
        # Alternatives for one slot may share labels, because an index has only one of them.
        alternatives = {
            label
            for other in before.stages
            if other.slot == stage.slot
            for label in (*other.counts, *other.edges)
        }
        taken = (labels - alternatives) & {*stage.counts, *stage.edges}
        if taken:
            raise ExtensionError(f"{where} counts {min(taken)}, which another stage already counts")
        if stage.proposes is not None and stage.proposes[0] in lists:
            raise ExtensionError(
                f"{where} searches {stage.proposes[0]}, which another stage already searches"
            )


def _check_channel(channel: Channel, specs: Mapping[str, Setting], *, outside: bool) -> None:
    where = f"the channel {channel.name}"
    _check_needs(where, channel.needs)
    _check_names_of(where, channel.settings, specs, "query")
    if outside and channel.rank is None:
        raise ExtensionError(f"{where} has no rank function", hint="set Channel(rank=...)")
    if channel.vector not in ("no", "model", "yes"):
        raise ExtensionError(f"{where} has vector={channel.vector!r}", hint="use no, model or yes")


def _check_needs(where: str, needs: Any) -> None:
    if callable(needs):
        return
    if not isinstance(needs, tuple) or not all(isinstance(need, str) for need in needs):
        raise ExtensionError(f"{where} has needs={needs!r}", hint='use a tuple of names, such as ("links",)')


def _check_names_of(
    where: str, names: Any, specs: Mapping[str, Setting], concern: str, rules: Container[str] = ()
) -> None:
    if not isinstance(names, tuple):
        raise ExtensionError(f"{where} has settings={names!r}", hint="use a tuple of names")
    for name in names:
        if name in rules:
            continue
        if name not in specs:
            raise ExtensionError(f"{where} reads the setting {name}, which does not exist")
        if specs[name].concerns != concern:
            raise ExtensionError(
                f"{where} reads the setting {name}, which has concerns={specs[name].concerns!r}",
                hint=f"it can read only settings with concerns={concern!r}",
            )


def _check_recipe(
    name: str,
    recipe: Recipe,
    channels: Mapping[str, Channel],
    specs: Mapping[str, Setting],
    rules: Container[str],
) -> None:
    where = f"the mode {name}"
    if not recipe.shares:
        raise ExtensionError(f"{where} has no channel")
    if recipe.join not in JOINS:
        raise ExtensionError(f"{where} has join={recipe.join!r}", hint="use one of " + ", ".join(JOINS))
    if not isinstance(recipe.automatic, (int, type(None))):
        raise ExtensionError(f"{where} has automatic={recipe.automatic!r}", hint="use an integer or None")
    if recipe.rollover is not None and recipe.rollover not in specs and recipe.rollover not in rules:
        raise ExtensionError(f"{where} reads the setting {recipe.rollover}, which does not exist")
    total = 0.0
    for place, share in enumerate(recipe.shares):
        if share.channel not in channels:
            raise ExtensionError(f"{where} has the channel {share.channel}, which does not exist")
        if share.of == REST:
            if place != len(recipe.shares) - 1:
                raise ExtensionError(f"{where} gives REST to a channel that is not the last")
        elif isinstance(share.of, str):
            spec = specs.get(share.of)
            if spec is None or float not in spec.types or spec.low is None or spec.high is None:
                raise ExtensionError(f"{where} has the share {share.of}, which is not a setting from 0 to 1")
            if spec.low < 0 or spec.high > 1:
                raise ExtensionError(f"{where} has the share {share.of}; its setting must be between 0 and 1")
        elif recipe.join == "shares":
            if not 0 <= share.of <= 1:
                raise ExtensionError(f"{where} gives {share.channel} a share of {share.of}")
            total += share.of
    if total > 1 + 1e-9:
        raise ExtensionError(f"the shares of {where} add up to {total:g}, which exceeds 1")
    if len({share.channel for share in recipe.shares}) < len(recipe.shares):
        raise ExtensionError(f"{where} has a channel twice")


def _check_preset(
    name: str, row: Mapping[str, Any], specs: Mapping[str, Setting], modes: Sequence[str]
) -> None:
    where = f"the preset {name}"
    for setting, value in row.items():
        if setting not in specs or setting == "system":
            raise ExtensionError(f"{where} sets {setting}, which is not a setting")
        wanted = [m.strip() for m in str(value).split(",")] if setting == "modes" else []
        wanted += [value] if setting == "mode" else []
        unknown = [mode for mode in wanted if mode not in modes]
        if unknown:
            raise ExtensionError(f"{where} has the mode {unknown[0]}, which does not exist")
        try:
            if setting != "mode":  # its choices are the modes, checked above
                specs[setting].check(value)
        except ConfigError as error:
            raise ExtensionError(f"{where} sets {error.message}") from None
