"""The settings that an index was built with, and those to ask it with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings, names, resolve
from ketrag_fast.base.config.catalogue import about_broken
from ketrag_fast.errors import ConfigError, IndexDamaged, ModelMismatch
from ketrag_fast.storage.generation import MANIFEST, Generation, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, read_json, read_manifest
from ketrag_fast.systems.planning import AUTO, modes_of
from ketrag_fast.systems.registry import LISTS, registry


def stored_settings(path: Path) -> Mapping[str, Any] | None:
    """The build settings of the published generation; None where there is none that can be read."""
    layout = Layout(path)
    number = current_number(layout)
    numbers = [number] if number is not None else list(reversed(layout.generations()))
    for candidate in numbers:
        try:
            return understood(settings_of(read_manifest(layout.generation(candidate) / MANIFEST)))
        except IndexDamaged:
            continue
    return None


def settings_of(manifest: Manifest) -> Mapping[str, Any]:
    """The build settings of a generation, with those that its version did not know yet."""
    return {**manifest.settings, "modes": modes_of(manifest)}


def understood(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of an index without the names that are not here: its system may be another package's,
    and that may be gone. What the others built can still be read.
    """
    found = registry()
    system = stored.get("system", "default")
    modes = [mode.strip() for mode in str(stored.get("modes", AUTO)).split(",")]
    here = [mode for mode in modes if mode in (*LISTS, *found.recipes)]
    return {
        **stored,
        "system": system if system in found.presets else "default",
        "modes": ",".join(here) or AUTO,
    }


def to_build_on(stored: Mapping[str, Any], given: Settings) -> Mapping[str, Any]:
    """The settings of an index that is to be brought up to date.

    Raises ExtensionError or ConfigError where its system is not here and no other one is named: what it
    built would be left out of the next generation.
    """
    system = str(stored.get("system", "default"))
    if system in registry().presets:
        return stored
    if "system" not in given.given:
        try:
            registry().table[system]
        except ConfigError as error:
            raise ConfigError(
                f"the index was built by the system {system}, which is not installed",
                hint="install the package that brings it, or name another system: --system default"
                + about_broken(registry().broken),
            ) from error
    return understood(stored)


def reading_settings(given: Settings, generation: Generation) -> Settings:
    """The settings for asking this generation: how it was built is its own, the rest is as given.

    Raises ModelMismatch if another embedder was given, ConfigError for another build setting.
    """
    stored = understood(settings_of(generation.manifest))
    resolved = resolve(flags=given.given, index=stored, presets=registry().table)
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
    # An index decides how it was built, and not how or by whom it is queried.
    kept = {n: v for n, v in stored.items() if n in names("build", "read") and n not in moved}
    own = resolved.settings.having(**kept)
    return own.having(embedder=spec_here(own.embedder, Layout(generation.folder.parent)))


def spec_here(spec: str, layout: Layout) -> str:
    """Where the embedding model of that name lies: in the index's own folder, where it came with a bundle."""
    if not layout.model_record.is_file():
        return spec
    record = read_json(layout.model_record)
    if not isinstance(record, dict) or record.get("spec") != spec:
        return spec  # the index has another model by now
    kind = spec.partition(":")[0]
    return f"{kind}:{layout.model.absolute()}"
