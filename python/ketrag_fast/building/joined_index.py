"""Several indexes that are searched as one: the index of all their documents, joined once and kept.

Rarities of words, names and titles, the mentions between documents and the order of equal scores depend on
all documents, so answers can only equal those of one index if these are computed over all parts. That is
done by a merge, which reads no source and calls no model, into a folder that every process of this user
shares. A part that changes removes the folder, and the next opening joins again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Meter, stopper
from ketrag_fast.building.merge import merge
from ketrag_fast.building.remote_parts import copy_of, is_service, state_of
from ketrag_fast.errors import (
    BackendError,
    ConfigError,
    IndexDamaged,
    IndexLocked,
    IndexMissing,
    StorageFailed,
)
from ketrag_fast.storage.allowed_folders import alone
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.durable import discard_folder
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.joined_folders import (
    begin_joined,
    discard_joined,
    drop_unused,
    home_of,
    read_about,
    write_about,
)
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import read_manifest
from ketrag_fast.systems.planning import stages_for

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback

_LACKING: Final = (IndexMissing, IndexDamaged, StorageFailed, BackendError)
"""Errors of a part that is missing; other errors are never skipped."""


@dataclass(frozen=True, slots=True)
class PartState:
    """A part, a folder or the address of a service, and what it contains now: the digest of its files and the
    fingerprint of its documents.
    """

    path: str
    digest: str
    generation: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that exist, and for each missing one its name and what is wrong."""

    present: tuple[PartState, ...]
    missing: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """A hash of what they contain."""
        rows = (f"{part.path}={part.digest}" for part in self.present)
        return text_digest([*rows, *(f"-{name}" for name, _ in self.missing)])[:32]

    @property
    def generation(self) -> int:
        """A number that rises with the generation of each part."""
        return sum(part.generation for part in self.present)

    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for each missing part, for the results of queries."""
        return tuple(f"the index {name} is missing: {reason}" for name, reason in self.missing)


@dataclass(frozen=True, slots=True)
class JoinedIndex:
    """The folder of the joined index, and the parts that it was made from."""

    folder: Path
    parts: Parts


def parts_of(names: Sequence[str], settings: Settings, look: Callable[[], object] = lambda: None) -> Parts:
    """Look at the parts, without reading their documents. `look` raises to end the wait for a service.

    Raises:
        ConfigError: none is given, or one twice.
        IndexMissing, IndexDamaged, IndexIncompatible: a part cannot be used. With the setting `missing=skip`
            only if none can.
        BackendError: a service does not answer.
    """
    if not names:
        raise ConfigError("no index given", hint="name at least one folder")
    present: dict[str, PartState] = {}
    missing: list[tuple[str, str]] = []
    first: Exception | None = None
    for name in names:
        try:
            part = _service(name, settings, look) if is_service(name) else look_at(Path(name))
        except _LACKING as error:
            if settings.missing == "error":
                raise
            first = first or error
            missing.append((name, error.message))
            continue
        if part.path in present:
            raise ConfigError(f"{name} is given twice", hint="give each index once")
        present[part.path] = part
    if first is not None and not present:
        raise first
    ordered = tuple(present[name] for name in sorted(present))
    return Parts(ordered, tuple(sorted(missing)))


def _service(url: str, settings: Settings, look: Callable[[], object]) -> PartState:
    digest, generation = state_of(url, offline=settings.offline, look=look)
    return PartState(url.rstrip("/"), digest, generation)


def look_at(path: Path) -> PartState:
    """Return what the index in a folder contains. Raises IndexMissing, IndexDamaged or IndexIncompatible."""
    layout = Layout(path)
    layout.require()
    number = current_number(layout)
    if number is None:
        raise IndexMissing(f"the index in {path} was never finished", hint=f"run `ketrag index -i {path}`")
    manifest = read_manifest(layout.generation(number) / MANIFEST)
    digest = text_digest([manifest.digest, str(manifest.documents.get("fingerprint"))])
    return PartState(os.path.realpath(path), digest, number)


def joined_index(
    names: Sequence[str], settings: Settings, callback: Callback | None = None, *, rebuild: bool = False
) -> JoinedIndex:
    """Return the joined index of some indexes; build it if it is missing, or with `rebuild`.

    Raises:
        Cancelled: `callback` returned False. Also raises what `parts_of` and a merge raise.
    """
    look = stopper(Meter("wait", callback))
    parts = parts_of(names, settings, look)
    home = home_of(settings.joined)
    folder = home / parts.key
    with writing(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(folder, check=look):
        about = read_about(folder)
        if rebuild or about is None or current_number(Layout(folder)) is None:
            discard_joined(folder)
            try:
                _join(parts, folder, settings, callback)
            except BaseException:
                discard_joined(folder)
                raise
        with suppress(OSError):
            os.utime(folder)
    drop_unused(home, folder)
    return JoinedIndex(folder, parts)


def _join(parts: Parts, folder: Path, settings: Settings, callback: Callback | None) -> None:
    """Merge the parts. A part that changes meanwhile would leave an index under a wrong key."""
    look = stopper(Meter("fetch", callback))
    paths = []
    for part in parts.present:
        if is_service(part.path):
            copy = copy_of(part.path, part.digest, folder.parent, offline=settings.offline, look=look)
            if look_at(copy).digest != part.digest:
                discard_folder(copy)
                raise _changed(part.path)
            paths.append(copy)
        else:
            paths.append(Path(part.path))
    folders = [part.path for part in parts.present if not is_service(part.path)]
    with writing(folder):
        begin_joined(folder, folders)
    merge(paths, folder, stages_for, settings, progress=callback)
    for part in parts.present:
        if not is_service(part.path) and look_at(Path(part.path)) != part:
            raise _changed(part.path)
    write_about(folder, folders, parts.generation)


def _changed(name: str) -> IndexLocked:
    return IndexLocked(f"{name} changed while the indexes were joined", hint="open them again")
