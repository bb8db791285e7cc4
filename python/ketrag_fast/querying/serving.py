"""Which modes an opened index serves, and what to do about the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ketrag_fast.config import Settings
from ketrag_fast.errors import KetragError, ModeUnavailable
from ketrag_fast.pipeline.planning import AUTO, modes_of, needs_reader, seconds_to_add
from ketrag_fast.querying.opened import Opened
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.registry import registry


def missing_of(
    generation: Generation, settings: Settings, core: Mapping[str, str | None], writer: bool
) -> dict[str, str | None]:
    """For each mode the first part that it lacks; None where the mode is served.

    `core` says what the core's channels lack; `writer` whether a language model can be asked.
    """
    found = registry()
    stages = generation.manifest.stages
    # Indexes from before `modes` hold everything, partly under other names: there the core alone decides.
    known = "modes" in generation.manifest.settings
    lacks: dict[str, str | None] = {}
    for mode, recipe in found.recipes.items():
        lacks[mode] = None
        for name in recipe.channels:
            channel = found.channels[name]
            try:
                needs = channel.needed(settings)
            except Exception as error:  # noqa: BLE001 - a function of another package: the other modes stand
                lacks[mode] = lacks[mode] or f"channel {name}, which fails ({type(error).__name__}: {error})"
                continue
            absent = next((s for s in _names(needs, settings) if s not in stages), None)
            lack = core.get(name) if channel.rank is None else None
            if lack is None and absent is not None and (known or channel.rank is not None):
                lack = f"the stage {absent}"
            lacks[mode] = lacks[mode] or lack
        if lacks[mode] is None and recipe.rewrite is not None and not writer:
            lacks[mode] = _WRITER
    return lacks


_WRITER = "a language model that writes a passage for each question"


def _names(needs: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    """The stages under their own names, where several can stand in one place."""
    slots = {
        stage.slot: stage.name
        for stage in registry().stages
        if stage.chosen_by is None or settings.value(stage.chosen_by[0]) == stage.chosen_by[1]
    }
    return tuple(slots.get(need, need) for need in needs)


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
    if lack == _WRITER:
        hint = "name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL"
        raise ModeUnavailable(f"mode {wanted} needs {lack}", hint=hint)
    if lack is not None:
        raise ModeUnavailable(
            f"mode {wanted} needs {lack}, which this index does not hold",
            hint=how_to_add(opened, wanted, path),
        )
    return wanted


def how_to_add(opened: Opened, mode: str, path: Path) -> str:
    """The command that adds a mode to an index, and about how long it takes."""
    found, settings, manifest = registry(), opened.settings, opened.generation.manifest
    if _reads(mode, settings) and "llm" not in manifest.models:
        return (
            f"`ketrag index -i {path} --llm SPEC` has the core chunks read (heuristic needs no model); "
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


def _reads(mode: str, settings: Settings) -> bool:
    try:
        return needs_reader(registry(), mode, settings)
    except KetragError:  # a system whose needs do not hold together: building it says why
        return False


def _about(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
