"""Which modes a generation of an index can serve, and which part each other mode lacks."""

from __future__ import annotations

from collections.abc import Mapping

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.planning import needs_reader
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.function_ref import resolve

UNREAD = "chunks read by a language model that count among the documents that are allowed alone"


def reads(mode: str, settings: Settings) -> bool:
    """Return whether a mode needs the entities and relations that an LLM extracts from the chunks."""
    try:
        return needs_reader(registry(), mode, settings)
    except KetragError:  # The needs of the system contradict each other; a build reports why.
        return False


def missing_of(
    generation: Generation, settings: Settings, core: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return for each mode the first missing part, or None if the mode can be used.

    Args:
        generation: The generation.
        settings: Settings of the query.
        core: Missing parts of the channels in the core.
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
    return lacks


def _names(needs: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    """Return the names of stages; a slot is replaced by the stage that the settings choose for it."""
    slots = {
        stage.slot: stage.name
        for stage in registry().stages
        if stage.chosen_by is None or settings.value(stage.chosen_by[0]) == stage.chosen_by[1]
    }
    return tuple(slots.get(need, need) for need in needs)
