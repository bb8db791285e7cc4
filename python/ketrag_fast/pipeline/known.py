"""The settings that an index was built with, and those to ask it with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ketrag_fast.config import Settings, catalogue, resolve
from ketrag_fast.errors import ConfigError, IndexDamaged, ModelMismatch
from ketrag_fast.pipeline.planning import modes_of
from ketrag_fast.storage.generation import MANIFEST, Generation, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, read_manifest
from ketrag_fast.systems.registry import registry


def stored_settings(path: Path) -> Mapping[str, Any] | None:
    """The build settings of the published generation; None where there is none that can be read."""
    layout = Layout(path)
    number = current_number(layout)
    numbers = [number] if number is not None else list(reversed(layout.generations()))
    for candidate in numbers:
        try:
            return settings_of(read_manifest(layout.generation(candidate) / MANIFEST))
        except IndexDamaged:
            continue
    return None


def settings_of(manifest: Manifest) -> Mapping[str, Any]:
    """The build settings of a generation, with those that its version did not know yet."""
    return {**manifest.settings, "modes": modes_of(manifest)}


def reading_settings(given: Settings, generation: Generation) -> Settings:
    """The settings for asking this generation: how it was built is its own, the rest is as given.

    Raises ModelMismatch if another embedder was given, ConfigError for another build setting.
    """
    resolved = resolve(flags=given.given, index=settings_of(generation.manifest), presets=registry().table)
    for name, old, new in resolved.differences:
        if name == "llm":
            continue  # who answers need not be who has read
        if name == "embedder":
            if generation.manifest.models.get(name) and new != "builtin":
                continue  # the same model in another place; another one is known by its fingerprint
            raise ModelMismatch(
                f"the index was built with the embedder {old!r}, not {new!r}",
                hint="leave the embedder to the index, or make new vectors: ketrag reembed --embedder ...",
            )
        if name in given.given:
            raise ConfigError(
                f"{name}: the index was built with {old!r}, not {new!r}",
                hint=f"leave {name} to the index, or build it anew: ketrag index --rebuild",
            )
    moved = {name for name, _, _ in resolved.differences if name in ("embedder", "llm")}
    kept = {n: v for n, v in settings_of(generation.manifest).items() if n in catalogue() and n not in moved}
    return resolved.settings.having(**kept)
