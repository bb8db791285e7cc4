"""The mode that is served, and what to do about a mode that is not."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.errors import KetragError, ModeUnavailable
from ketrag_fast.query.availability import UNREAD, WRITER, reads
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.systems.planning import AUTO, modes_of, seconds_to_add
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.function_ref import resolve


def chosen_mode(opened: Opened, mode: str | None, path: Path) -> str:
    """The mode that is served: the one named, else that of the settings; `auto` takes the best there is.

    Raises ConfigError for an unknown name, ModeUnavailable where the index lacks a part.
    """
    wanted = opened.settings.mode if mode is None else mode
    found = registry()
    if wanted == AUTO:
        ranked = sorted(
            (recipe.automatic, name) for name, recipe in found.recipes.items() if recipe.automatic is not None
        )
        serving = [name for _, name in ranked if opened.missing[name] is None]
        serving += [name for name, lack in opened.missing.items() if lack is None]
        if serving:
            return serving[0]
        raise ModeUnavailable("this index serves no mode", hint="build it anew with `ketrag index --rebuild`")
    found.recipe(wanted)  # raises where there is none
    lack = opened.missing[wanted]
    if lack == WRITER:
        hint = "name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL"
        raise ModeUnavailable(f"mode {wanted} needs {lack}", hint=hint)
    if lack == UNREAD:
        hint = "an index of these documents alone (`ketrag index SOURCE... --llm SPEC`) has them read"
        raise ModeUnavailable(f"mode {wanted} needs {lack}", hint=hint)
    own = (found.channels[name].lacks for name in found.recipe(wanted).channels)
    if lack is not None and any(said is not None and resolve(said)(opened.settings) == lack for said in own):
        raise ModeUnavailable(f"mode {wanted} needs {lack}", hint="the index itself has what it takes")
    if lack is not None:
        raise ModeUnavailable(
            f"mode {wanted} needs {lack}, which this index does not hold",
            hint=how_to_add(opened, wanted, path),
        )
    return wanted


def how_to_add(opened: Opened, mode: str, path: Path) -> str:
    """The command that adds a mode to an index, and about how long it takes."""
    found, settings, manifest = registry(), opened.settings, opened.generation.manifest
    if reads(mode, settings) and "llm" not in manifest.models:
        more = "" if found.recipes[mode].usual else f" --modes {modes_of(manifest)},{mode}"
        return (
            f"`ketrag index -i {path} --llm SPEC{more}` has the core chunks read (heuristic needs no model); "
            "`ketrag estimate` says what a model takes"
        )
    modes = [name.strip() for name in modes_of(manifest).split(",")]
    command = f"`ketrag index -i {path} --modes {','.join(dict.fromkeys([*modes, mode]))}`"
    try:
        seconds = seconds_to_add(found, mode, settings, manifest.stages)
    except KetragError:
        seconds = None
    if seconds is None:
        return f"{command} adds it, and does nothing else again"
    return f"{command} adds it in about {_about(seconds)}, and does nothing else again"


def _about(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
