"""What each mode lacks in one generation of an index."""

from __future__ import annotations

from collections.abc import Mapping

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.planning import needs_reader
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.function_ref import resolve

UNREAD = "chunks read by a language model that count among the documents that are allowed alone"
WRITER = "a language model that writes a passage for each question"


def reads(mode: str, settings: Settings) -> bool:
    """Whether a mode stands on what something has read of the chunks."""
    try:
        return needs_reader(registry(), mode, settings)
    except KetragError:  # a system whose needs do not hold together: building it says why
        return False


def missing_of(
    generation: Generation, settings: Settings, core: Mapping[str, str | None], writer: bool
) -> dict[str, str | None]:
    """For each mode the first part that it lacks; None where the mode is served.

    `core` says what the core's channels lack; `writer` whether a language model can be asked.
    """
    found = registry()
    stages = generation.manifest.stages
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
            if lack is None and absent is not None:
                lack = f"the stage {absent}"
            if lack is None and channel.lacks is not None:
                lack = resolve(channel.lacks)(settings)
            lacks[mode] = lacks[mode] or lack
        if lacks[mode] is None and recipe.rewrite is not None and not writer:
            lacks[mode] = WRITER
    return lacks


def _names(needs: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    """The stages under their own names, where several can stand in one place."""
    slots = {
        stage.slot: stage.name
        for stage in registry().stages
        if stage.chosen_by is None or settings.value(stage.chosen_by[0]) == stage.chosen_by[1]
    }
    return tuple(slots.get(need, need) for need in needs)
