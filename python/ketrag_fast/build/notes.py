"""What a user should know of a build before trusting its name."""

from __future__ import annotations

from ketrag_fast.base.config import Settings
from ketrag_fast.systems.planning import AUTO, needs_reader
from ketrag_fast.systems.registry import registry


def note(settings: Settings, *, reads: bool) -> str | None:
    """A system whose own mode stands on chunks that are read, in an index where nothing reads them."""
    found = registry()
    mode = found.presets.get(settings.system, {}).get("mode", AUTO)
    if mode == AUTO or reads or not needs_reader(found, mode, settings):
        return None
    channels = found.recipes[mode].channels
    rest = [name for name in channels if not _reads(name, settings)]
    half = f"what its channel {rest[0]} needs is built; " if rest else ""
    return (
        f"{settings.system}: {half}the entity skeleton is not built: name what reads the core chunks with "
        "--llm (heuristic needs no model)"
    )


def _reads(channel: str, settings: Settings) -> bool:
    from ketrag_fast.systems.spec.stage import order_stages

    found = registry()
    needs = found.channels[channel].needed(settings)
    return any(stage.reads for stage in order_stages(found.stages, needs, settings))
