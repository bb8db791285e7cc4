"""What an index remembers of itself: its settings and its failures."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ketrag_fast.config import Settings, catalogue, resolve
from ketrag_fast.errors import ConfigError, IndexDamaged, ModelMismatch
from ketrag_fast.pipeline.planning import modes_of
from ketrag_fast.storage.generation import MANIFEST, Generation, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, read_manifest
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Failure


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


def stored_failures(path: Path) -> list[Failure]:
    """The documents and chunks that the last build could not use."""
    query = "SELECT document, code, message FROM failures ORDER BY rowid"
    return [Failure(*row) for row in _rows(path, query)]


def stored_readings(path: Path, key: str) -> dict[str, float]:
    """What a reader has spent in this index, over all builds: `calls`, tokens, seconds, and the chunks
    that a later build found read (`cache_hits`).
    """
    names = ("calls", "tokens_in", "tokens_out", "tokens_shared", "seconds", "cache_hits")
    query = (
        "SELECT count(replies.chunk), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0),"
        " coalesce(sum(tokens_shared), 0), coalesce(sum(seconds), 0.0), hits"
        " FROM readers LEFT JOIN replies ON reader = number WHERE key = ? GROUP BY number"
    )
    found = _rows(path, query, key)
    return dict(zip(names, found[0] if found else (0, 0, 0, 0, 0.0, 0), strict=True))


def _rows(path: Path, query: str, *values: str) -> list[tuple[Any, ...]]:
    """Rows of the tables, which are opened for reading alone; none where there are no tables."""
    tables = Layout(path).tables
    if not tables.is_file():
        return []
    uri = tables.absolute().as_uri()
    for mode in ("mode=ro", "mode=ro&immutable=1"):  # a log beside the file needs a folder one may write
        try:
            with closing(sqlite3.connect(f"{uri}?{mode}", uri=True)) as db:
                return db.execute(query, values).fetchall()
        except sqlite3.OperationalError:
            continue
        except sqlite3.DatabaseError as error:
            raise IndexDamaged(f"{tables} is damaged: {error}", hint="index the sources anew") from error
    return []


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
