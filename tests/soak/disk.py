"""A disk that remembers which of its changes were synced, and what a power cut may leave of the others.

It is fed with the record that record.c writes. The rules are those that file systems give, and no kinder:

* What was written to a file before its sync is there. Of later writes each may be there or not, whatever
  their order; be there up to a multiple of 512 bytes; or have its place filled with zeros or with garbage.
* Names (made, linked, renamed, removed) are there after a sync of their folder; of later ones in a folder,
  those up to some moment. A rename is there in both folders or in none. A sync of a file says nothing
  about its name.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

_HEAD: Final = struct.Struct("<6Q")
SECTOR: Final = 512
UNSYNCED: Final = "-shm"
"""What SQLite maps ends so: it is made anew by whoever opens the file after a crash."""
WAYS: Final = ("nothing unsynced", "all", "names alone", "data alone", "zeros", "garbage", "mixed")


class Entry(NamedTuple):
    """One call, as record.c has it."""

    what: str
    number: int
    place: int
    first: str
    second: str
    data: bytes


def entries(record: bytes) -> Iterator[Entry]:
    """All calls in their order."""
    at = 0
    while at < len(record):
        what, number, place, first, second, data = _HEAD.unpack_from(record, at)
        at += _HEAD.size
        texts = record[at : at + first + second].decode("utf-8", "surrogateescape")
        yield Entry(
            chr(what),
            number,
            place,
            texts[:first],
            texts[first:],
            record[at + first + second : at + first + second + data],
        )
        at += first + second + data


class Write(NamedTuple):
    """`data` at `place`, or where it is None a cut to so many bytes."""

    place: int
    data: bytes | None


@dataclass(eq=False)
class File:
    """What a power cut leaves for sure, and what came since."""

    synced: bytes = b""
    since: list[Write] = field(default_factory=list)

    def sync(self) -> None:
        """All of it is there from now on."""
        self.synced = _after(self.synced, self.since)
        self.since = []


@dataclass(eq=False)
class Folder:
    """The names at this moment, and those that a power cut leaves for sure."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)


class Named(NamedTuple):
    """A change of names: all of them at once, or none."""

    changes: tuple[tuple[Folder, str, File | Folder | None], ...]


class Disk:
    """All below `root`, which is there and synced at the beginning."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = Folder()
        self._files: dict[int, File] = {}
        self._folders: dict[int, Folder] = {root.stat().st_ino: self.top}
        self._names: list[Named] = []
        self._load(root, self.top)

    def _load(self, path: Path, folder: Folder) -> None:
        for entry in sorted(path.iterdir()):
            number = entry.stat().st_ino
            found: File | Folder
            if entry.is_dir():
                found = self._folders[number] = Folder()
                self._load(entry, found)
            else:
                found = self._files.setdefault(number, File(entry.read_bytes()))
            folder.now[entry.name] = folder.synced[entry.name] = found

    # ------------------------------------------------------------ what happened

    def apply(self, entry: Entry) -> None:
        """Takes up one call. ValueError for one that the record cannot hold."""
        match entry.what:
            case "w":
                self._file(entry).since.append(Write(entry.place, entry.data))
            case "t":
                self._file(entry).since.append(Write(entry.place, None))
            case "s" if entry.number in self._folders:
                self._sync_names(self._folders[entry.number])
            case "s":
                self._file(entry).sync()
            case "c":
                made = self._files[entry.number] = File()
                if entry.first:  # else a file without a name, which no crash leaves
                    self._name(self._spot(entry.first, made))
            case "m":
                folder = self._folders[entry.number] = Folder()
                self._name(self._spot(entry.first, folder))
            case "u":
                self._name(self._spot(entry.first, None))
            case "l":
                self._name(self._spot(entry.second, self._at(entry.first)))
            case "r":
                moved = self._at(entry.first)
                self._name(self._spot(entry.first, None), self._spot(entry.second, moved))
            case "!" if entry.first == "mmap" and self._is_index_of_a_log(entry.number):
                pass
            case _:
                raise ValueError(f"the record cannot hold {entry.first} {entry.second}")

    def _file(self, entry: Entry) -> File:
        return self._files[entry.number]

    def _is_index_of_a_log(self, number: int) -> bool:
        names = (name for folder in self._all(self.top) for name, found in folder.now.items()
                 if found is self._files.get(number))  # fmt: skip
        return all(name.endswith(UNSYNCED) for name in names)

    def _all(self, folder: Folder) -> Iterator[Folder]:
        yield folder
        for found in folder.now.values():
            if isinstance(found, Folder):
                yield from self._all(found)

    def _spot(self, path: str, to: File | Folder | None) -> tuple[Folder, str, File | Folder | None]:
        place = Path(path)
        parent = self._at(str(place.parent))
        assert isinstance(parent, Folder)
        return parent, place.name, to

    def _at(self, path: str) -> File | Folder:
        found: File | Folder = self.top
        for part in Path(path).relative_to(self.root).parts:
            assert isinstance(found, Folder)
            found = found.now[part]
        return found

    def _name(self, *changes: tuple[Folder, str, File | Folder | None]) -> None:
        _put(changes, "now")
        self._names.append(Named(changes))

    def _sync_names(self, folder: Folder) -> None:
        """The names of a folder, and what came before them in folders that share a rename with it."""
        folders = {id(folder)}
        chosen: list[Named] = []
        for named in reversed(self._names):
            own = {id(change[0]) for change in named.changes}
            if own & folders:
                folders |= own
                chosen.append(named)
        for named in reversed(chosen):
            _put(named.changes, "synced")
        taken = set(map(id, chosen))
        self._names = [named for named in self._names if id(named) not in taken]

    # ------------------------------------------------------------ what a power cut leaves

    def leave(self, target: Path, way: str, chance: Random) -> None:
        """Writes into a new folder what a power cut at this moment may leave, one of many."""
        names = {id(folder): dict(folder.synced) for folder in self._ever(self.top, {})}
        stopped: set[int] = set()
        for named in self._names:
            own = {id(change[0]) for change in named.changes}
            drop = way in ("nothing unsynced", "data alone") or (way == "mixed" and chance.random() < 0.15)
            if drop or own & stopped:  # later names of the same folder do not come without earlier ones
                stopped |= own
                continue
            for folder, name, found in named.changes:
                place = names.setdefault(id(folder), {})
                place.pop(name, None)
                if found is not None:
                    place[name] = found
        self._write(self.top, names, target, way, chance, {})

    def _ever(self, folder: Folder, seen: dict[int, Folder]) -> list[Folder]:
        """All folders that have or had a name."""
        if id(folder) not in seen:
            seen[id(folder)] = folder
            changed = [c[2] for named in self._names for c in named.changes]
            for found in [*folder.now.values(), *folder.synced.values(), *changed]:
                if isinstance(found, Folder):
                    self._ever(found, seen)
        return list(seen.values())

    def _write(
        self,
        folder: Folder,
        names: dict[int, dict[str, File | Folder]],
        target: Path,
        way: str,
        chance: Random,
        done: dict[int, bytes],
    ) -> None:
        target.mkdir()
        for name, found in names.get(id(folder), {}).items():
            if isinstance(found, Folder):
                self._write(found, names, target / name, way, chance, done)
            elif not name.endswith(UNSYNCED) or chance.random() < 0.5:
                if id(found) not in done:  # the same bytes under all its names
                    done[id(found)] = left(found, way, chance)
                (target / name).write_bytes(done[id(found)])


def left(file: File, way: str, chance: Random) -> bytes:
    """The bytes of a file after a power cut."""
    if way in ("nothing unsynced", "names alone") or not file.since:
        return file.synced
    if way in ("all", "data alone"):
        return _after(file.synced, file.since)
    if way in ("zeros", "garbage"):
        return _after(file.synced, [_other(write, way, chance) for write in file.since])
    some = []
    for write in file.since:
        fate = chance.choice(["there", "there", "not there", "torn", "zeros", "garbage"])
        if fate == "torn" and write.data is not None:
            end = (chance.randrange(len(write.data) + 1) + write.place) // SECTOR * SECTOR - write.place
            some.append(Write(write.place, write.data[: max(end, 0)]))
        elif fate in ("zeros", "garbage"):
            some.append(_other(write, fate, chance))
        elif fate == "there":
            some.append(write)
    return _after(file.synced, some)


def _other(write: Write, way: str, chance: Random) -> Write:
    """The place is taken, and holds something else."""
    if write.data is None:
        return write
    size = len(write.data)
    return Write(write.place, bytes(size) if way == "zeros" else chance.randbytes(size))


def _after(data: bytes, writes: list[Write]) -> bytes:
    out = bytearray(data)
    for place, new in writes:
        if new is None:
            del out[place:]
        if len(out) < place:
            out.extend(bytes(place - len(out)))
        if new is not None:
            out[place : place + len(new)] = new
    return bytes(out)


def _put(changes: tuple[tuple[Folder, str, File | Folder | None], ...], which: str) -> None:
    for folder, name, found in changes:
        names = getattr(folder, which)
        names.pop(name, None)
        if found is not None:
            names[name] = found
