"""Generations: how one is opened, chosen and published. Readers open one and keep it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ketrag_fast.errors import IndexDamaged, IndexIncompatible, IndexMissing, KetragError
from ketrag_fast.storage import checksum
from ketrag_fast.storage.arrays import Arrays, check_file, path_of
from ketrag_fast.storage.durable import (
    discard_folder,
    link_or_copy,
    move_folder,
    remove_folder,
    replace_file,
    sync_folder,
    write_json,
)
from ketrag_fast.storage.faults import writing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, StageRecord, content_digest, read_manifest

MANIFEST = "manifest.json"
_MANY_BYTES = 1 << 24
KEPT = 2
"""Generations that stay after a publication: the new one, and the one that readers may have open."""


@dataclass(frozen=True)
class Generation:
    """One whole generation, open for reading."""

    folder: Path
    manifest: Manifest
    stages: Mapping[str, Arrays]

    @property
    def number(self) -> int:
        """Ascending from 1; it is also in the folder's name."""
        return self.manifest.generation


def open_generation(folder: Path, *, full: bool = True) -> Generation:
    """Opens and checks a generation: sizes always, checksums if `full`."""
    manifest = read_manifest(folder / MANIFEST)
    if manifest.checksum != checksum.NAME:
        raise IndexIncompatible(
            f"{folder} has {manifest.checksum} checksums; this version uses {checksum.NAME}",
            hint="build the index anew with --rebuild",
        )
    stages = {}
    for name, record in manifest.stages.items():
        check_stage(folder / name, record, full=full)
        stages[name] = Arrays(folder / name, record.files)
    if content_digest(manifest.stages.values()) != manifest.digest:
        raise IndexDamaged(f"{folder / MANIFEST} is altered", hint="run `ketrag index` again")
    return Generation(folder, manifest, stages)


def check_stage(folder: Path, record: StageRecord, *, full: bool) -> None:
    """IndexDamaged unless every file of the stage is as it was written. The first by name is reported."""

    def check(name: str) -> None:
        check_file(path_of(folder, name, record.files[name]), record.files[name], full=full)

    names = sorted(record.files)
    if not full or record.bytes < _MANY_BYTES:
        for name in names:
            check(name)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # hashing runs without the interpreter
        list(pool.map(check, names))


def current_number(layout: Layout) -> int | None:
    """The number in CURRENT; None if the file is lost or makes no sense."""
    try:
        text = layout.current.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    numbers = [number for number in layout.generations() if layout.generation(number).name == text]
    return numbers[0] if numbers else None


def open_current(layout: Layout, *, full: bool = True) -> Generation:
    """The generation that CURRENT names; if CURRENT is lost, the newest whole one.

    A damaged current generation is an error that says so: an older answer is never given silently.
    """
    number = current_number(layout)
    while number is not None:
        try:
            return open_generation(layout.generation(number), full=full)
        except IndexDamaged:
            opened, number = number, current_number(layout)
            if number == opened:
                raise  # else a builder published and removed while this one was reading
    layout.require()
    first: KetragError | None = None
    for candidate in reversed(layout.generations()):
        try:
            return open_generation(layout.generation(candidate), full=full)
        except (IndexDamaged, IndexIncompatible) as error:
            first = first or error
    raise first or IndexMissing(
        f"the index in {layout.root} was never finished",
        hint="run the same `ketrag index` again: it goes on from there",
    )


def newest_whole(layout: Layout) -> Generation | None:
    """For a builder: the newest generation whose manifest and sizes are right, or None.

    A folder gets its name only when it is whole and synced, so one that is newer than CURRENT was
    finished by a build that died on its last step.
    """
    for number in reversed(layout.generations()):
        try:
            return open_generation(layout.generation(number), full=False)
        except IndexDamaged:
            continue
    return None


def publish(
    layout: Layout,
    stages: Iterable[tuple[Path, StageRecord]],
    *,
    settings: Mapping[str, Any],
    documents: Mapping[str, Any],
    version: str,
    models: Mapping[str, Any] | None = None,
) -> Manifest:
    """Assembles a generation aside from finished stage folders, names it, and makes it current."""
    number = max(layout.generations(), default=0) + 1
    with writing(layout.root):
        aside = layout.work / "publish"
        remove_folder(aside)
        aside.mkdir(parents=True, mode=0o700)
        records = {}
        for folder, record in stages:
            target = aside / record.name
            target.mkdir(mode=0o700)
            for name, file in record.files.items():
                link_or_copy(path_of(folder, name, file), path_of(target, name, file))
            sync_folder(target)
            records[record.name] = record
        manifest = Manifest(
            generation=number,
            created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            version=version,
            settings=settings,
            stages=records,
            documents=documents,
            digest=content_digest(records.values()),
            checksum=checksum.NAME,
            models=models or {},
        )
        write_json(aside / MANIFEST, manifest.to_json())
        sync_folder(aside)
        move_folder(aside, layout.generation(number))
        make_current(layout, number)
    return manifest


def make_current(layout: Layout, number: int) -> None:
    """Readers that open the index from now on get this generation."""
    with writing(layout.root):
        replace_file(layout.current, (layout.generation(number).name + "\n").encode("ascii"))


def prune(layout: Layout) -> None:
    """Removes the generations that no reader should still have open."""
    current = current_number(layout)
    older = [number for number in layout.generations() if current is not None and number < current]
    for number in older[: max(len(older) - (KEPT - 1), 0)]:
        discard_folder(layout.generation(number))
