"""Chooses the mode that serves a query, and describes how to add a mode that an index lacks."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.errors import KetragError, ModeUnavailable
from ketrag_fast.query.availability import UNREAD, reads
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.recipes import ModeRecipe, find_recipe
from ketrag_fast.systems.planning import AUTO, modes_of, seconds_to_add
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.function_ref import resolve


def choose_mode(opened: Opened, name: str | None, path: Path) -> ModeRecipe:
    """Return the recipe of the named mode, or of the mode in the settings. `auto` is the best available mode.

    Raises:
        ConfigError: The mode is unknown.
        ModeUnavailable: The index at `path` lacks a part that the mode needs.
    """
    wanted = opened.settings.mode if name is None else name
    if wanted == AUTO:
        return find_recipe(_best_mode(opened))
    mode = find_recipe(wanted)
    lack = opened.missing[wanted]
    if lack is not None:
        message, hint = _explain_lack(opened, mode, lack, path)
        raise ModeUnavailable(message, hint=hint)
    return mode


def _best_mode(opened: Opened) -> str:
    """Return the mode that `auto` selects for this index."""
    recipes = registry().recipes
    ranked = sorted(
        (recipe.automatic, name) for name, recipe in recipes.items() if recipe.automatic is not None
    )
    for name in (*(name for _, name in ranked), *opened.missing):
        if opened.missing[name] is None:
            return name
    raise ModeUnavailable("this index has no mode to query", hint="build it again: `ketrag index --rebuild`")


def _explain_lack(opened: Opened, mode: ModeRecipe, lack: str, path: Path) -> tuple[str, str]:
    """Return the message and the hint for a mode that cannot be used because of `lack`."""
    message = f"mode {mode.name} needs {lack}"
    if lack == UNREAD:
        return message, "index these documents alone (`ketrag index SOURCE... --llm SPEC`) to have them read"
    checks = (channel.lacks for channel in mode.channels)
    if any(check is not None and resolve(check)(opened.settings) == lack for check in checks):
        return message, "only this setting is missing: the index has everything else that the mode needs"
    return f"{message}, which this index does not have", describe_adding(opened, mode.name, path)


def describe_adding(opened: Opened, mode: str, path: Path) -> str:
    """Return the command that adds a mode to an index, and an estimate of its duration."""
    systems, settings, manifest = registry(), opened.settings, opened.generation.manifest
    if reads(mode, settings) and "llm" not in manifest.models:
        more = "" if systems.recipes[mode].usual else f" --modes {modes_of(manifest)},{mode}"
        return (
            f"`ketrag index -i {path} --llm SPEC{more}` extracts entities and relations from the core chunks "
            "(heuristic needs no model); `ketrag estimate` prints the cost"
        )
    modes = [name.strip() for name in modes_of(manifest).split(",")]
    command = f"`ketrag index -i {path} --modes {','.join(dict.fromkeys([*modes, mode]))}`"
    try:
        seconds = seconds_to_add(systems, mode, settings, manifest.stages)
    except KetragError:
        seconds = None
    if seconds is None:
        return f"{command} adds it and repeats nothing else"
    return f"{command} adds it in about {_duration(seconds)} and repeats nothing else"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
