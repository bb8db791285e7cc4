"""Descriptions of the folders of an index, written by people for people and assistants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ketrag_fast.errors import InputError, KetragError, UnknownName
from ketrag_fast.query.source_paths import sources_of
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.layout import Layout

LONGEST: Final = 500
"""Maximum length of a description in characters."""


def descriptions_of(folder: Path) -> dict[str, str]:
    """Return the descriptions of an index by folder; the key "" has the description of the whole index."""
    from ketrag_fast.storage.source_table import open_sources

    tables = Layout(folder).tables
    if not tables.is_file():
        return {}
    try:
        with open_sources(tables) as opened:
            return opened.folder_descriptions()
    except KetragError:
        return {}


def describe(folder: Path, text: str | None, place: str | os.PathLike[str] | None) -> None:
    """Store the description of a folder, a file or the whole index; without `text`, remove it.

    Raises InputError for a text that is empty or too long, UnknownName if no source contains the path,
    IndexLocked while a build runs.
    """
    from ketrag_fast.storage.lock import builder_lock

    layout = Layout(folder)
    layout.require()
    plain = None if text is None else " ".join(text.split())
    if plain is not None and not 1 <= len(plain) <= LONGEST:
        raise InputError(f"a description has 1 to {LONGEST} characters, got {len(plain):,}")
    key = ""
    if place is not None:
        key = os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111 - links stay
        known = sources_of(folder)
        if not any(_is_in(key, spec) or _is_in(spec, key) for spec in known):
            raise UnknownName(
                f"{os.fspath(place)} is not in the index", hint=f"its sources are: {', '.join(known[:5])}"
            )
    with builder_lock(layout):
        reading.keep_description(layout, key, plain)


def description_for(path: str, described: Mapping[str, str]) -> str | None:
    """Return the description of the innermost described folder that contains a file.

    Examples:
        >>> description_for("/notes/work/a.md", {"/notes": "mine", "/notes/work": "projects"})
        'projects'
    """
    inner = max((key for key in described if key and _is_in(path, key)), key=len, default=None)
    return None if inner is None else described[inner]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)
