"""Upgrade an index of format 4: texts, keywords and links keep their form, vectors are computed again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.database import connect
from ketrag_fast.storage.durable import json_bytes, replace_file
from ketrag_fast.storage.generation import MANIFEST, current_number, discard, make_current
from ketrag_fast.storage.io_errors import REPAIR, writing
from ketrag_fast.storage.layout import EARLIER, FORMAT, Layout, incompatible
from ketrag_fast.storage.manifest import (
    Manifest,
    content_digest,
    read_json,
)

_MARK: Final = "PRAGMA user_version"


def upgrade_format(layout: Layout, lost: Collection[str]) -> None:
    """Convert an index of format 4 to the current format, and drop the stages `lost` and all stored vectors.

    The caller holds the builder's lock and rebuilds the lost stages. Older generations are removed. After a
    kill the same call continues; an index of the current format is not changed.

    Raises:
        IndexIncompatible: the index has another format.
        IndexDamaged: a manifest is altered.
    """
    current = current_number(layout)
    for number in layout.generations():
        path = layout.generation(number) / MANIFEST
        data = read_json(path)
        found = data.get("format") if isinstance(data, dict) else None
        if found == FORMAT:
            continue
        if found != EARLIER:
            raise incompatible(path.parent, int(found or 0))
        if current is not None and number != current:
            discard(layout, number)
            continue
        with writing(layout.root):
            replace_file(path, json_bytes(_without(data, lost, path).sealed()))
        if current is None:
            make_current(layout, number)
    _take_over_tables(layout.tables)


def _without(data: Mapping[str, Any], lost: Collection[str], path: Path) -> Manifest:
    """Return a format 4 manifest with some stages removed."""
    try:
        manifest = Manifest.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(f"{path} is invalid: {error!r}", hint=REPAIR) from error
    stages = {name: stage for name, stage in manifest.stages.items() if name not in lost}
    return replace(manifest, stages=stages, digest=content_digest(stages.values()))


def _take_over_tables(path: Path) -> None:
    """Delete the vectors from the tables, because this format stores them in generations."""
    if not path.is_file():
        return
    with writing(path), closing(connect(path, "FULL")) as db:
        found = int(db.execute(_MARK).fetchone()[0])
        if found == FORMAT:
            return
        if found != EARLIER:
            raise incompatible(path, found)
        db.execute("BEGIN IMMEDIATE")
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        for name in ("vectors", "vector_models"):
            if name in names:
                db.execute(f"DELETE FROM {name}")  # noqa: S608 - ours
        db.execute(f"{_MARK} = {FORMAT}")
        db.execute("COMMIT")
        db.execute("VACUUM")
