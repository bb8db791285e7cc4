"""Open, choose and publish generations. A reader keeps the generation that it opened.

Opening maps every file of the generation. A mapping needs no descriptor, lasts until it is released, is
inherited by a fork and ends with its process, so a builder may remove the folder at any time: readers in
this and in other processes keep what they opened, and a dead reader holds nothing. (A lock per reader
would need a writable folder, does not work on some network drives, and would keep the folder for
as long as a reader lives.) On Windows, where a mapped file cannot be removed, `prune` leaves it for the
next time.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from ketrag_fast._core import MappedFile
from ketrag_fast.base.memory import map_threads
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexDamaged, IndexIncompatible, IndexMissing
from ketrag_fast.records import dataclass
from ketrag_fast.storage.arrays import Arrays, carry_hashes, check_file, open_hashes
from ketrag_fast.storage.checksum import NAME
from ketrag_fast.storage.delta import DELTA, Delta, open_delta
from ketrag_fast.storage.durable import (
    discard_folder,
    link_or_copy,
    move_folder,
    remove_folder,
    replace_file,
    sync_folder,
    write_json,
)
from ketrag_fast.storage.io_errors import REPAIR, unreadable, writing
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.manifest import Manifest, StageRecord, content_digest, path_of, read_manifest

Verify = Literal["full", "blocks", "sizes"]
"""What is verified in addition to file sizes: everything on opening, each block on first read, or nothing."""
MANIFEST = "manifest.json"
_MANY_BYTES = 1 << 24
KEPT = 2
"""Default number of generations to keep: the new one, and one that a reader may be opening."""


@dataclass(frozen=True)
class Generation:
    """A complete generation, open for reading."""

    folder: Path
    manifest: Manifest
    stages: Mapping[str, Arrays]
    verify: Verify
    stamp: tuple[int, int] = (0, 0)
    """Identity of its manifest file. An index that replaces another may have the same numbers."""
    delta: Delta | None = None
    """The earlier generation and the changes, if this generation is stored as a delta; otherwise None."""

    @property
    def number(self) -> int:
        """Number of the generation, counted from 1; part of the folder's name."""
        return self.manifest.generation

    def base_of(self, name: str, record: StageRecord, verify: Verify) -> Arrays | None:
        """Return a stage's arrays before changes, or None if records or verification differ."""
        stages = self.stages if self.delta is None else self.delta.base
        same = name in stages and self.records()[name].files == record.files
        return stages[name] if same and self.verify == verify else None

    def records(self) -> Mapping[str, StageRecord]:
        """Return the records of the files in the generation's folder."""
        return self.manifest.stages if self.delta is None else self.delta.stages


def open_generation(folder: Path, verify: Verify = "blocks", before: Generation | None = None) -> Generation:
    """Open a generation: its manifest and all sizes are checked, the rest according to `verify`.

    If `before` has the same base open, its mapped files and their unpacked values are shared.
    """
    stamp = stamp_of(folder)
    manifest = read_manifest(folder / MANIFEST)
    if DELTA not in manifest.stages:
        before = None
    stages = {}
    for name, record in manifest.stages.items():
        shared = None if before is None else before.base_of(name, record, verify)
        mapped = _map(folder / name, record, verify) if shared is None else dict(shared.mapped())
        stages[name] = Arrays(folder / name, record.files, mapped)
    if content_digest(manifest.stages.values()) != manifest.digest:
        raise IndexDamaged(f"{folder / MANIFEST} is altered", hint="run `ketrag index` again")
    if DELTA in stages:
        known = None if before is None else before.delta
        current, described, delta = open_delta(folder, manifest, stages, known)
        return Generation(folder, described, current, verify, stamp, delta)
    return Generation(folder, manifest, stages, verify, stamp)


def stamp_of(folder: Path) -> tuple[int, int]:
    """Return an identity of the manifest file, which distinguishes generations with the same name."""
    try:
        about = (folder / MANIFEST).stat()
    except OSError:
        return 0, 0
    return about.st_ino, about.st_mtime_ns


def _map(folder: Path, record: StageRecord, verify: Verify) -> dict[str, MappedFile]:
    """Map a stage's files. Raises IndexDamaged for the first altered file by name."""
    hashes = open_hashes(folder, record.files) if verify == "blocks" else {}
    found = {}
    for name, file in sorted(record.files.items()):
        digest = None if verify == "sizes" else file.digest
        try:
            found[name] = MappedFile(path_of(folder, name, file), file.bytes, digest, hashes.get(name))
            if verify == "full":
                found[name].verify()
        except IndexDamaged as error:
            raise IndexDamaged(str(error), hint=REPAIR) from error
    return found


def check_stage(folder: Path, record: StageRecord, *, full: bool) -> None:
    """Raise IndexDamaged for the first altered file by name."""

    def check(name: str) -> None:
        check_file(path_of(folder, name, record.files[name]), record.files[name], full=full)

    names = sorted(record.files)
    if not full or record.bytes < _MANY_BYTES:
        for name in names:
            check(name)
        return
    map_threads(check, names, os.cpu_count() or 1)  # hashing releases the GIL


def current_number(layout: Layout) -> int | None:
    """Return the number in CURRENT; None if the file is missing or invalid, or the folder does not exist."""
    number = named_number(layout)
    return number if number in layout.generations() else None


def named_number(layout: Layout) -> int | None:
    """Return the number in CURRENT, even if its folder is missing; None if the file is missing or invalid."""
    try:
        text = read_regular(layout.current).decode("ascii").strip()
    except UnicodeDecodeError:
        return None
    except OSError as error:
        if isinstance(unreadable(error, layout.current), IndexDamaged):
            return None
        raise unreadable(error, layout.current) from error
    return layout.number(text)


def lost_number(layout: Layout) -> int | None:
    """Return the number in CURRENT if its folder is lost and all other generations are older; otherwise None.

    A builder removes a generation only after CURRENT names a newer one.
    """
    named = named_number(layout)  # read before listing the folders, because a builder may publish meanwhile
    numbers = layout.generations()
    return named if named is not None and numbers and numbers[-1] < named else None


def open_current(layout: Layout, verify: Verify = "blocks", before: Generation | None = None) -> Generation:
    """Open the generation that CURRENT names, or the newest one if the file CURRENT is lost.

    Damage or loss of that generation is an error: an older one never replaces it silently.
    """
    number = current_number(layout)
    while number is not None:
        try:
            return open_generation(layout.generation(number), verify, before)
        except IndexDamaged:
            opened, number = number, current_number(layout)
            if number == opened:
                raise  # otherwise a builder published a newer generation and removed this one meanwhile
    layout.require()
    numbers = layout.generations()
    if not numbers:
        raise never_finished(layout)
    lost = lost_number(layout)
    if lost is not None:
        raise IndexDamaged(
            f"{layout.generation(lost)}, which {layout.current.name} names, is lost; older ones are left",
            hint="run `ketrag index` again: it builds the current one from the documents",
        )
    return open_generation(layout.generation(numbers[-1]), verify)


def never_finished(layout: Layout) -> IndexMissing:
    """Return the error for an index without a generation."""
    command = "merge" if (layout.work / MERGE).is_file() else "index"
    return IndexMissing(
        f"the index in {layout.root} was never finished",
        hint=f"run the same `ketrag {command}` again: it goes on from there",
    )


def is_newest(layout: Layout, opened: Generation) -> bool:
    """Return whether an open generation is still the newest one, and its files still exist unchanged."""
    folder = layout.generation(opened.number)
    numbers = layout.generations()
    if not numbers or numbers[-1] != opened.number or stamp_of(folder) != opened.stamp:
        return False
    try:
        for name, record in opened.records().items():
            check_stage(folder / name, record, full=False)
    except IndexDamaged:
        return False
    return opened.stamp != (0, 0)


def newest_whole(layout: Layout) -> Generation | None:
    """Return the newest generation with a valid manifest and sizes, or None; for builders.

    A folder gets its name only when it is complete and synced, so one newer than CURRENT was finished by a
    build that died on its last step.
    """
    for number in reversed(layout.generations()):
        try:
            return open_generation(layout.generation(number), "sizes")
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
    """Assemble a generation in `work/` from finished stage folders, name it, and make it current."""
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
            carry_hashes(folder, target, record.files)
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
            checksum=NAME,
            models=models or {},
        )
        write_json(aside / MANIFEST, manifest.sealed())
        sync_folder(aside)
        move_folder(aside, layout.generation(number))
        make_current(layout, number)
    return manifest


def make_current(layout: Layout, number: int) -> None:
    """Make a generation the one that new readers open."""
    with writing(layout.root):
        replace_file(layout.current, (layout.generation(number).name + "\n").encode("ascii"))


def finish_publication(layout: Layout, newest: Generation) -> None:
    """Make the generation that `newest_whole` found current if a build died on its last step.

    If a newer one is damaged or lost, CURRENT stays as it is: readers must not get older documents silently.
    """
    if lost_number(layout) is None and newest.number == layout.generations()[-1] != current_number(layout):
        make_current(layout, newest.number)


def prune(layout: Layout, keep: int = KEPT) -> None:
    """Remove old generations, except the newest `keep` including the current one.

    Readers keep the files that they have open.
    """
    current = current_number(layout)
    older = [number for number in layout.generations() if current is not None and number < current]
    for number in older[: max(len(older) - (keep - 1), 0)]:
        discard(layout, number)


def drop_damaged(layout: Layout, numbers: range) -> list[int]:
    """Delete the damaged generations among `numbers`, and return which were deleted."""
    found = []
    for number in [number for number in layout.generations() if number in numbers]:
        try:
            open_generation(layout.generation(number), "full")
        except IndexDamaged:
            discard(layout, number)
            found.append(number)
        except IndexIncompatible:
            continue
    return found


def discard(layout: Layout, number: int) -> None:
    """Remove a generation. It is durably renamed first, so that a crash leaves no partial generation."""
    aside = layout.work / layout.generation(number).name
    try:
        layout.work.mkdir(mode=0o700, exist_ok=True)
        move_folder(layout.generation(number), aside)
        sync_folder(layout.root)
    except OSError:
        return  # mapped on Windows, or a disk error: the next build removes it
    discard_folder(aside)
