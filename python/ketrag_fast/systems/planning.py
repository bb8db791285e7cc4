"""Which stages a build runs: those that the modes need which the index is to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ExtensionError, IndexDamaged, KetragError
from ketrag_fast.storage.file_records import REPAIR
from ketrag_fast.storage.manifest import Manifest, StageRecord
from ketrag_fast.systems.registry import Registry, registry
from ketrag_fast.systems.spec.arrays import Sizes, measure_sizes
from ketrag_fast.systems.spec.stage import Stage, order_stages
from ketrag_fast.systems.spec.system import Channel

Planner = Callable[[Settings, bool], Sequence[Stage]]
"""From the settings, and whether something reads the chunks, to the stages in their order."""

AUTO, ALL = "auto", "all"


def stages_for(settings: Settings, reads: bool, extra: Sequence[str] = ()) -> tuple[Stage, ...]:
    """The stages of a build with these settings, and `extra` ones that no mode asks for."""
    found = registry()
    wanted = [
        need for mode in wanted_modes(settings, reads) for need in required_stages(found, mode, settings)
    ]
    return order_stages(found.stages, list(dict.fromkeys([*wanted, *extra, "units"])), settings)


def embedding_stages() -> frozenset[str]:
    """The stages whose time goes with the embedding model."""
    return frozenset(stage.name for stage in registry().stages if "embedder" in stage.settings)


def wanted_modes(settings: Settings, reads: bool) -> tuple[str, ...]:
    """The modes that the index is to answer, in the order of the registry.

    `auto` is the usual ones and the system's own; those that need the chunks read are among them where
    something reads.
    """
    found = registry()
    named = [mode.strip() for mode in settings.modes.split(",")]
    chosen = set(found.recipes if ALL in named else named) - {AUTO}
    if AUTO in named:
        chosen |= {mode for mode, recipe in found.recipes.items() if recipe.usual}
        chosen |= {settings.mode} - {AUTO}
    return tuple(
        mode
        for mode in found.recipes
        if mode in chosen and (reads or not needs_reader(found, mode, settings))
    )


def required_stages(found: Registry, mode: str, settings: Settings) -> tuple[str, ...]:
    """The stages that the channels of a mode read."""
    channels = (found.channels[name] for name in found.recipes[mode].channels)
    return tuple(dict.fromkeys(need for channel in channels for need in _channel_stages(channel, settings)))


def _channel_stages(channel: Channel, settings: Settings) -> tuple[str, ...]:
    try:
        return channel.needed(settings)
    except KetragError:
        raise
    except Exception as error:
        raise ExtensionError(
            f"the channel {channel.name} cannot say what it needs: {type(error).__name__}: {error}"
        ) from error


def chain(found: Registry, mode: str, settings: Settings) -> tuple[Stage, ...]:
    """All stages that a mode needs, and what these need."""
    return order_stages(found.stages, required_stages(found, mode, settings), settings)


def needs_reader(found: Registry, mode: str, settings: Settings) -> bool:
    """Whether a mode stands on what something has read of the chunks."""
    return any(stage.reads for stage in chain(found, mode, settings))


def sizes_of(stages: Mapping[str, StageRecord]) -> Sizes:
    """The sizes that the arrays of some stages name (`units`, `entities`, ...), from the manifest alone."""
    found: Sizes = {}
    known = {stage.name: stage for stage in registry().stages}
    for name, record in stages.items():
        if name in known and known[name].arrays is not None:
            shapes = {array: file.shape for array, file in record.files.items()}
            measure_sizes(known[name].arrays or {}, shapes, found, name)
    return found


def modes_of(manifest: Manifest) -> str:
    """Return the `modes` that an index was built for. Raises IndexDamaged if the manifest has none."""
    modes: Any = manifest.settings.get("modes")
    if not isinstance(modes, str):
        raise IndexDamaged(f"the manifest's setting modes is not text: {modes!r:.80}", hint=REPAIR)
    return modes


def seconds_to_add(
    found: Registry, mode: str, settings: Settings, stages: Mapping[str, StageRecord]
) -> float | None:
    """About how long the stages take that a mode lacks, from the sizes and from how fast this machine was.

    None where that cannot be told: a model's vectors, or chunks that have to be read.
    """
    sizes = sizes_of(stages)
    lacking = [stage for stage in chain(found, mode, settings) if stage.name not in stages]
    embedding = embedding_stages() if settings.embedder != "builtin" else frozenset()
    if any(stage.reads or stage.name in embedding for stage in lacking):
        return None
    said = took = 0.0
    for stage in found.stages:
        record = stages.get(stage.name)
        if record is not None and stage.seconds is not None:
            said += _seconds(stage, sizes)
            took += record.seconds
    pace = min(max(took / said, 0.1), 10.0) if said > 0.05 else 1.0
    return pace * sum(_seconds(stage, sizes) for stage in lacking)


def _seconds(stage: Stage, sizes: Sizes) -> float:
    """What a stage says about its time; nothing where its function fails: a guess is worth no error."""
    try:
        return 0.0 if stage.seconds is None else float(stage.seconds(sizes))
    except Exception:  # noqa: BLE001 - whatever another package's function raises
        return 0.0
