"""Warnings about a build that lacks part of the system it is named after."""

from __future__ import annotations

from ketrag_fast.base.config import Settings
from ketrag_fast.systems.planning import AUTO, needs_reader
from ketrag_fast.systems.registry import registry


def note(settings: Settings, *, reads: bool) -> str | None:
    """Return a warning if the system's default mode needs a reader and the index has none."""
    found = registry()
    mode = found.presets.get(settings.system, {}).get("mode", AUTO)
    if mode == AUTO or reads or not needs_reader(found, mode, settings):
        return None
    channels = found.recipes[mode].channels
    rest = [name for name in channels if not _reads(name, settings)]
    half = f"its channel {rest[0]} is built; " if rest else ""
    return (
        f"{settings.system}: {half}the stages that need a reader are not: choose the reader of the core "
        "chunks with --llm (heuristic needs no model)"
    )


def _reads(channel: str, settings: Settings) -> bool:
    from ketrag_fast.systems.spec.stage import order_stages

    found = registry()
    needs = found.channels[channel].needed(settings)
    return any(stage.reads for stage in order_stages(found.stages, needs, settings))
