"""The settings that an index was built with, and the settings for queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings, names, resolve
from ketrag_fast.base.config.settings import about_broken
from ketrag_fast.errors import ConfigError, IndexDamaged, KetragError, ModelMismatch
from ketrag_fast.storage.generation import MANIFEST, Generation, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, read_json, read_manifest
from ketrag_fast.systems.planning import AUTO, combine_modes, modes_of
from ketrag_fast.systems.registry import LISTS, registry


def stored_settings(path: Path) -> Mapping[str, Any] | None:
    """Return the build settings of the newest readable generation, or else of an unfinished build.

    None if no build has begun.
    """
    layout = Layout(path)
    number = current_number(layout)
    numbers = [number] if number is not None else list(reversed(layout.generations()))
    for candidate in numbers:
        try:
            return understood(settings_of(read_manifest(layout.generation(candidate) / MANIFEST)))
        except IndexDamaged:
            continue
    try:
        begun = begun_settings(layout)
    except (KetragError, OSError):
        return None  # the tables are damaged, which a build reports
    return understood(begun) if begun is not None else None


def begun_settings(layout: Layout) -> Mapping[str, Any] | None:
    """Return the settings of the build that began last, whether it ended or not; None if none has begun."""
    from ketrag_fast.storage.tables import Tables, has_tables  # SQLite: an open index needs none of it

    if not has_tables(layout.tables):
        return None
    with Tables(layout.tables, read_only=True) as tables:
        return tables.settings() or None


def settings_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the build settings of a generation."""
    return {**manifest.settings, "modes": modes_of(manifest)}


def understood(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of an index, leaving out systems and modes that are not installed.

    The stages of installed systems stay usable after another package's system was uninstalled.
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


def with_modes(given: Settings, stored: Mapping[str, Any] | None, *, only: bool = False) -> Settings:
    """Return the given settings with the modes of the next build, see `combine_modes`."""
    modes = given.given.get("modes")
    if not isinstance(modes, str):
        return given
    before = str(stored.get("modes", AUTO)) if stored is not None else AUTO
    return given.having(modes=combine_modes(before, modes, only=only))


def to_build_on(stored: Mapping[str, Any], given: Settings) -> Mapping[str, Any]:
    """Return the settings for the next build of an index.

    Raises ExtensionError or ConfigError if its system is not installed and `given` names no other, because
    the next generation would lose that system's stages.
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
                hint="install the package that provides it, or choose another system: --system default"
                + about_broken(registry().broken),
            ) from error
    return understood(stored)


def reading_settings(given: Settings, generation: Generation) -> Settings:
    """Return the settings for queries: build settings come from the generation, the rest from `given`.

    Raises ModelMismatch if a different embedder was given, and ConfigError for any other build setting.
    """
    stored = understood(settings_of(generation.manifest))
    given = with_modes(given, stored)
    resolved = resolve(flags=given.given, index=stored, presets=registry().table)
    for name, old, new in resolved.differences:
        if name == "llm":
            continue  # the model that answers may differ from the reader
        if name == "sparse_model" and old is not None and new is not None:
            continue  # perhaps the same model elsewhere; its fingerprint is checked at the first query
        if name == "embedder":
            if generation.manifest.models.get(name) and new != "builtin":
                continue  # perhaps the same model elsewhere; its fingerprint is checked when it is loaded
            check_embedder(str(new))
            raise ModelMismatch(
                f"the index was built with the embedder {old!r}, not {new!r}",
                hint="omit --embedder, or compute new vectors: ketrag reembed --embedder ...",
            )
        if name in given.given:
            raise ConfigError(
                f"{name}: the index was built with {old!r}, not {new!r}",
                hint=f"omit {name}, or build the index with it: `ketrag index` (says if it needs --rebuild)",
            )
    moved = {name for name, _, _ in resolved.differences if name in ("embedder", "llm")}
    if resolved.settings.sparse_model is not None:
        moved.add("sparse_model")
    # Only build settings are fixed by the index.
    kept = {n: v for n, v in stored.items() if n in names("build", "read") and n not in moved}
    own = resolved.settings.having(**kept)
    return own.having(embedder=spec_here(own.embedder, Layout(generation.folder.parent)))


def check_embedder(spec: str) -> None:
    """Raise ConfigError unless a spec names an embedding model, which catches typing errors."""
    from ketrag_fast.models.embedders.registry import parse

    parse(spec)


def spec_here(spec: str, layout: Layout) -> str:
    """Return the spec of the model's location: the folder of the index, if the model came in its bundle."""
    if not layout.model_record.is_file():
        return spec
    record = read_json(layout.model_record)
    if not isinstance(record, dict) or record.get("spec") != spec:
        return spec  # the index was re-embedded with another model
    kind = spec.partition(":")[0]
    return f"{kind}:{layout.model.absolute()}"
