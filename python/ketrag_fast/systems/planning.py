"""Planning of a build: the stages that the modes of the index need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ketrag_fast._core import __version__
from ketrag_fast.base.config import Settings, build_settings
from ketrag_fast.errors import ExtensionError, IndexDamaged, KetragError
from ketrag_fast.storage.io_errors import REPAIR
from ketrag_fast.storage.manifest import Manifest, StageRecord
from ketrag_fast.systems.registry import Registry, registry
from ketrag_fast.systems.shared import has_model
from ketrag_fast.systems.spec.arrays import Sizes, measure_sizes
from ketrag_fast.systems.spec.stage import Stage, check_order, order_stages
from ketrag_fast.systems.spec.system import Channel

Planner = Callable[[Settings, bool], Sequence[Stage]]
"""Maps settings, and whether the index has a reader of core chunks, to the stages in order."""

AUTO, ALL = "auto", "all"


def stages_for(settings: Settings, reads: bool, extra: Sequence[str] = ()) -> tuple[Stage, ...]:
    """Return the stages of a build with these settings, and the `extra` stages even if no mode needs them."""
    found = registry()
    wanted = [
        need for mode in wanted_modes(settings, reads) for need in required_stages(found, mode, settings)
    ]
    return order_stages(found.stages, list(dict.fromkeys([*wanted, *extra, "units"])), settings)


def planned_stages(stages: Sequence[Stage] | Planner, settings: Settings, reads: bool) -> Sequence[Stage]:
    """Return the stages of one build. Raises ConfigError if their order is impossible."""
    planned = stages(settings, reads) if callable(stages) else stages
    wanted = [stage for stage in planned if reads or not stage.reads]
    check_order(wanted, settings)
    return wanted


def published_stages(manifest: Manifest, settings: Settings) -> tuple[Stage, ...] | None:
    """Return the stages of a published index if these settings plan the same ones; None if that is unknown.

    Planning again takes a tenth of the time of an edit. It is only needed if settings, version or the systems
    of other packages may differ from those of the index.
    """
    found = registry()
    same = manifest.version == __version__ and dict(manifest.settings) == build_settings(settings)
    if not (same and found.is_own):
        return None
    stages = {stage.name: stage for stage in found.stages}
    return tuple(stages[name] for name in manifest.stages if name in stages)


def embedding_stages() -> frozenset[str]:
    """Return the names of the stages whose run time depends on the embedding model."""
    return frozenset(stage.name for stage in registry().stages if "embedder" in stage.settings)


def wanted_modes(settings: Settings, reads: bool) -> tuple[str, ...]:
    """Return the modes that the index supports, in the order of the registry.

    `auto` stands for the usual modes and the default mode of the system. Modes that need a reader are left
    out if there is none. Without a reader and a default mode that needs vectors, `auto` also leaves out
    modes with vectors: fitted vectors take most of the build time and disk space, and their modes rank below
    `bm25`. With a model, only the modes remain that `--mode auto` can choose.
    """
    found = registry()
    named = combine_modes(AUTO, settings.modes).split(",")
    chosen = set(found.recipes if ALL in named else named) - {AUTO}
    if AUTO in named:
        usual = [mode for mode, recipe in found.recipes.items() if recipe.usual]
        own = settings.mode != AUTO and needs_vectors(found, settings.mode, settings)
        chosen |= {
            mode
            for mode in usual
            if reads
            or own
            or (has_model(settings) and found.recipes[mode].automatic is not None)
            or not needs_vectors(found, mode, settings)
        }
        chosen |= {settings.mode} - {AUTO}
    return tuple(
        mode
        for mode in found.recipes
        if mode in chosen and (reads or not needs_reader(found, mode, settings))
    )


def combine_modes(stored: str, given: str, *, only: bool = False) -> str:
    """Return the modes that the next build prepares, given the modes that the index has (`stored`).

    `+mode` adds a mode, and `auto` with other modes adds these too, unless `only` is set. Other lists replace
    the modes of the index.
    """
    named = [mode.strip() for mode in given.split(",")]
    is_added = any(mode.startswith("+") for mode in named) or (AUTO in named and len(named) > 1 and not only)
    before = [mode.strip() for mode in stored.split(",")] if is_added else []
    return ",".join(dict.fromkeys([*before, *(mode.removeprefix("+") for mode in named)]))


def required_stages(found: Registry, mode: str, settings: Settings) -> tuple[str, ...]:
    """Return the stages that the channels of a mode read."""
    channels = (found.channels[name] for name in found.recipes[mode].channels)
    return tuple(dict.fromkeys(need for channel in channels for need in _channel_stages(channel, settings)))


def _channel_stages(channel: Channel, settings: Settings) -> tuple[str, ...]:
    try:
        return channel.needed(settings)
    except KetragError:
        raise
    except Exception as error:
        raise ExtensionError(
            f"the needs of channel {channel.name} raised {type(error).__name__}: {error}"
        ) from error


def chain(found: Registry, mode: str, settings: Settings) -> tuple[Stage, ...]:
    """Return all stages that a mode needs, directly or indirectly."""
    return order_stages(found.stages, required_stages(found, mode, settings), settings)


def needs_reader(found: Registry, mode: str, settings: Settings) -> bool:
    """Return whether a mode needs entities or other data that a reader extracts from the chunks."""
    return any(stage.reads for stage in chain(found, mode, settings))


def needs_vectors(found: Registry, mode: str, settings: Settings) -> bool:
    """Return whether a mode needs vectors of the texts, from a model or fitted."""
    embedding = embedding_stages()
    return any(stage.name in embedding for stage in chain(found, mode, settings))


def sizes_of(stages: Mapping[str, StageRecord]) -> Sizes:
    """Return the named sizes (`units`, `entities`, ...) of stages, from the manifest alone."""
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
    """Estimate how long the missing stages of a mode take, from the sizes and this machine's past speed.

    Returns None if a missing stage needs an embedding model or a reader.
    """
    sizes = sizes_of(stages)
    lacking = [stage for stage in chain(found, mode, settings) if stage.name not in stages]
    embedding = embedding_stages() if has_model(settings) else frozenset()
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
    """Return a stage's estimate of its run time in seconds, or 0 if the estimate fails."""
    try:
        return 0.0 if stage.seconds is None else float(stage.seconds(sizes))
    except Exception:  # noqa: BLE001 - another package's function may raise anything
        return 0.0
