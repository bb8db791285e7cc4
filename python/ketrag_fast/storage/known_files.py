"""What an index knows of the files of its sources, by which changes are found without opening a file.

A row has the size, the times of change, the inode number and the hash of a file when it was read, and the
positions of its documents: from the position of the row to that of the next row. The table changes in the
transaction that changes the documents. It is not bundled, because elsewhere there are other files. An index
without the table knows nothing of its files; the next build reads them.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import fsdecode, fsencode
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.hashes import blake2b
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.database import Database
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import FORMAT

FILES: Final = "files"
"""Name of the table."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files (
  source    INTEGER NOT NULL,            -- number of the source
  place     INTEGER NOT NULL,            -- first position of its documents; negative for a folder
  file      TEXT NOT NULL,               -- id of the file in the source; '' for a folder
  path      BLOB,                        -- absolute; NULL if it is that of the source, '/' and `file`
  stat      BLOB NOT NULL,               -- size, times of change (content, inode) in ns, inode number
  digest    BLOB NOT NULL,               -- hash of the content (not of a folder), checksum of the row
  reader    INTEGER NOT NULL,            -- hash of the versions and settings of the readers
  documents INTEGER NOT NULL,            -- number of documents; `AGAIN` if the file must be read again
  notes     TEXT NOT NULL,               -- JSON: [[document, code, message], ...]: what was not read
  PRIMARY KEY (source, place)
) STRICT, WITHOUT ROWID
"""
_COLUMNS: Final = "source, place, file, path, stat, digest, reader, documents, notes"
_DIGEST: Final = _COLUMNS.split(", ").index("digest")
_SELECT: Final = f"SELECT {_COLUMNS}, CAST(spec AS BLOB) FROM files JOIN sources ON number = source"  # noqa: S608 - ours
_BYTES: Final = (
    "SELECT source, place, CAST(file AS BLOB), path, stat, digest, reader, documents, CAST(notes AS BLOB)"
    " FROM files ORDER BY source, place"
)
_ORDER: Final = "ORDER BY source, place"
_PACKED: Final = (
    "SELECT group_concat(path, x'00'), group_concat(stat, '') FROM (SELECT"
    " coalesce(path, CAST(spec || '/' || file AS BLOB)) AS path, stat FROM files"
    " JOIN sources ON number = source WHERE ORDER BY source, place)"
)
_FEW: Final = 16
"""Rows that are looked for one by one among all rows."""
AGAIN: Final = -1
"""Stands for the number of documents of a file that the next comparison of all files must read."""
_STAT: Final = struct.Struct("<qqqq")
STAT_BYTES: Final = _STAT.size
_SIZE_BYTES: Final = 8
"""Length of the size at the beginning of a stat."""
UNKNOWN: Final = -2
"""Stands for the time of a file that changed so recently that the next change may have the same time."""
_COARSE: Final = 1_000_000_000
_FINE: Final = 20_000_000
"""Resolution of file times in ns: `_COARSE` if times are whole seconds, otherwise `_FINE`."""
_FUTURE: Final = 3_600_000_000_000
"""Nanoseconds by which a time must be in the future so that no later change is expected to have it, too.

A clock that went back leaves such times, and programs set them; the clock of a file server may be a little
ahead, though.
"""
DIGEST_BYTES: Final = 20
"""Length of the hash of a file's content, as in Git. 32 bytes make an index of 10,000 notes 1 % larger."""
_HASHED_BYTES: Final = 32
_SUM_BYTES: Final = 4
NO_DIGEST: Final = bytes(DIGEST_BYTES)
"""Stands for the hash of a file that cannot be read."""
_INVALID: Final = f"length(stat) != {STAT_BYTES} OR NOT json_valid(notes)"
GAP: Final = 1 << 32
"""Positions between two files, so that a new file moves no other; a file may have as many documents."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file, or with an empty `file` a folder, as it was when a build read it; see `_SCHEMA`."""

    source: int
    place: int
    file: str
    path: str
    stat: bytes
    digest: bytes = b""
    reader: int = 0
    documents: int = 0
    notes: tuple[Failure, ...] = ()

    @property
    def is_folder(self) -> bool:
        """Whether the row is that of a folder, or of a file that decides which files of a folder are read."""
        return not self.file

    @property
    def is_skipped(self) -> bool:
        """Whether no reader reads the file."""
        return not self.documents and any(note.code == FORMAT for note in self.notes)

    @property
    def size(self) -> int:
        """The size in bytes; -1 for a missing file."""
        return size_of(self.stat)

    @property
    def changed(self) -> int | None:
        """The time of the last change of the content in ns; None if it is not known."""
        found = int(_STAT.unpack(self.stat)[1])
        return None if found == UNKNOWN else found

    def is_as(self, stat: bytes) -> bool:
        """Return whether a file with another stat is as it was; an unknown time is that of any file."""
        size, changed, *inode = _STAT.unpack(self.stat)
        size_now, changed_now, *inode_now = _STAT.unpack(stat)
        return (size, inode) == (size_now, inode_now) and changed in (UNKNOWN, changed_now)

    @property
    def is_settled(self) -> bool:
        """Whether a later change of the file has another time."""
        return self.changed is not None


def packed_paths(paths: Iterable[str]) -> bytes:
    """Return paths in the form that the core takes."""
    return b"".join(fsencode(path) + b"\0" for path in paths)


def stats_of(paths: Sequence[str]) -> list[bytes]:
    """Return what is known of files now, with `UNKNOWN` as the time of a file that changed just before."""
    now, found = time.time_ns(), _core.file_stats(packed_paths(paths))
    return [settled(found[at : at + STAT_BYTES], now) for at in range(0, len(found), STAT_BYTES)]


def settled(stat: bytes, now: int) -> bytes:
    """Return the stat of a file that was looked up at the time `now` (ns)."""
    size, changed, of_inode, inode = _STAT.unpack(stat)
    times = [one for one in (changed, of_inode) if one - now < _FUTURE]
    latest = max(times, default=0)
    margin = _FINE if latest % _COARSE else 2 * _COARSE
    return stat if size < 0 or now - latest > margin else _STAT.pack(size, UNKNOWN, of_inode, inode)


def size_of(stat: bytes) -> int:
    """Return the size of a file in bytes, -1 for a missing one, given its stat."""
    return int(_STAT.unpack(stat)[0])


def is_missing(stat: bytes) -> bool:
    """Return whether there is no file, given its stat."""
    return size_of(stat) < 0


def is_hidden_by_error(path: str) -> bool:
    """Return whether a file may exist, although looking it up fails: its folder cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return False


def digests_of(paths: Sequence[str], root: Path | None) -> list[bytes]:
    """Return the hashes of files; `NO_DIGEST` for one that cannot be read.

    With `root`, a file is read only if it is inside that folder after all links.
    """
    found = _core.hash_files(packed_paths(paths), root)
    return [found[at : at + DIGEST_BYTES] for at in range(0, len(found), _HASHED_BYTES)]


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files and folders that are not as they were when a build read them.

    Attributes:
        rows: What was known of them.
        stats: What is known of them now.
        counts: The number of files with documents of each source of which anything is known, by its number.
        touched: The files that have other times, and the size that they had, if they are listed separately:
            numbers by which `FileTable.files_at` finds them, each with what is known of the file now.
    """

    rows: tuple[KnownFile, ...]
    stats: tuple[bytes, ...]
    counts: dict[int, int]
    touched: tuple[tuple[int, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The known files of a folder by their names, and the names of known folders in it."""

    files: Mapping[str, KnownFile]
    folders: frozenset[str]


_PUBLISHED: Final = ":published"
"""Name of the row of `settings` with the token of the published documents; see `FileTable.is_published`."""


class FileTable(Database):
    """The part of the open tables that holds the known files."""

    def has_known_files(self) -> bool:
        """Return whether anything is known of the files."""
        return FILES in self.tables()

    def is_published(self) -> bool:
        """Return whether the documents are those of the published generation; True if that is not known.

        They are not after a build that was killed between storing and publishing them.
        """
        query = "SELECT value = (SELECT hex(token) FROM document_state) FROM settings WHERE name = ?"
        row = self._db.execute(query, (_PUBLISHED,)).fetchone()
        return row is None or bool(row[0])

    def mark_published(self) -> None:
        """Store that the documents as they are now are published."""
        query = "INSERT OR REPLACE INTO settings SELECT ?, hex(token) FROM document_state"
        self._db.execute(query, (_PUBLISHED,))

    def drop_invalid_files(self) -> None:
        """Delete rows that were altered, of which nothing is known then."""
        if self.has_known_files():
            self._db.execute(f"DELETE FROM files WHERE {_INVALID}")  # noqa: S608 - ours
            keys = [(source, place) for source, place, _ in self.altered_files()]
            self._db.executemany("DELETE FROM files WHERE source = ? AND place = ?", keys)

    def known_files(self, source: int | None = None) -> list[KnownFile]:
        """Return the known files and folders in order: all, or those of a source.

        Invalid rows are skipped: their files are read again.
        """
        if not self.has_known_files():
            return []
        if source is None:
            return list(_valid(self._db.execute(f"{_SELECT} {_ORDER}")))
        return list(_valid(self._db.execute(f"{_SELECT} WHERE source = ? {_ORDER}", (source,))))

    def known_files_at(self, keys: Iterable[tuple[int, int]]) -> list[KnownFile]:
        """Return the known files and folders with these sources and positions."""
        query = f"{_SELECT} WHERE source = ? AND place = ?"
        return list(_valid(self._db.execute(query, key).fetchone() for key in keys))

    def changed_files(
        self,
        sources: Iterable[int],
        keys: Sequence[tuple[int, int]] | None = None,
        *,
        separate: bool = False,
    ) -> ChangedFiles | None:
        """Look up the known files of some sources, and return those that are not as they were.

        With `keys`, only the rows with these sources and positions are looked up. With `separate`, touched
        files are listed separately. Returns None if a row was altered.
        """
        wanted = frozenset(sources)
        counts = dict(
            self._db.execute("SELECT source, sum(documents != 0) FROM files GROUP BY source").fetchall()
        )
        if keys is not None:
            rows = self.known_files_at(key for key in keys if key[0] in wanted)
            paths, stats = packed_paths(row.path for row in rows), b"".join(row.stat for row in rows)
        else:
            rows, (paths, stats) = [], self._packed_files(_among(wanted))
        if len(stats) != STAT_BYTES * paths.count(b"\0"):
            return None
        at_time = time.time_ns()
        numbers, now = _core.changed_files(paths, stats)
        found = [now[at : at + STAT_BYTES] for at in range(0, len(now), STAT_BYTES)]
        touched: list[tuple[int, bytes]] = []
        if keys is not None:
            changed = [rows[number] for number in numbers]
        else:
            if separate and numbers:
                folders, pairs = self._folder_numbers(wanted), list(zip(numbers, found, strict=True))
                touched = [
                    (number, settled(stat, at_time))
                    for number, stat in pairs
                    if _is_same_size(stats, number, stat) and number not in folders
                ]
                apart = {number for number, _ in touched}
                numbers = [number for number in numbers if number not in apart]
                found = [stat for number, stat in pairs if number not in apart]
            changed = self.files_at(numbers, wanted)
        if len(changed) < len(found):
            return None
        return ChangedFiles(tuple(changed), tuple(found), counts, tuple(touched))

    def _folder_numbers(self, sources: Iterable[int]) -> set[int]:
        """Return the numbers of the folders among the known files of some sources."""
        query = f"SELECT place < 0 FROM files {_among(sources)} {_ORDER}"  # noqa: S608 - ours
        return {number for number, (is_folder,) in enumerate(self._db.execute(query)) if is_folder}

    def _packed_files(self, where: str) -> tuple[bytes, bytes]:
        """Return the paths and stats of known files in the form that the core takes."""
        before, self._db.text_factory = self._db.text_factory, bytes
        try:
            paths, stats = self._db.execute(_PACKED.replace("WHERE", where)).fetchone()
        finally:
            self._db.text_factory = before
        return (b"", b"") if paths is None else (paths + b"\0", stats)

    def files_at(self, numbers: Sequence[int], sources: Iterable[int]) -> list[KnownFile]:
        """Return the known files with these ascending numbers in some sources; altered ones are left out."""
        query = f"{_SELECT} {_among(sources)} {_ORDER} LIMIT ? OFFSET ?"
        if len(numbers) > _FEW:
            first = numbers[0]
            rows = self._db.execute(query, (numbers[-1] - first + 1, first)).fetchall()
            return list(_valid(rows[number - first] for number in numbers))
        return list(_valid(self._db.execute(query, (1, number)).fetchone() for number in numbers))

    def files_with(self, digest: bytes) -> list[KnownFile]:
        """Return the known files whose content has a hash."""
        if not self.has_known_files():
            return []
        query = f"{_SELECT} WHERE substr(digest, 1, {DIGEST_BYTES}) = ? AND file != '' {_ORDER}"
        return list(_valid(self._db.execute(query, (digest,))))

    def content_of_folders(self, source: int, folders: Sequence[str]) -> dict[str, FolderContent] | None:
        """Return what is known in some folders of a source; None if ids do not tell the folders of files."""
        query = "SELECT 1 FROM files WHERE source = ? AND file != '' AND path IS NOT NULL LIMIT 1"
        if self._db.execute(query, (source,)).fetchone() is not None:
            return None
        inner: dict[str, set[str]] = {folder: set() for folder in folders}
        files: dict[str, dict[str, KnownFile]] = {folder: {} for folder in folders}
        for row in self._rows_in(source, folders):
            folder, _, name = row.path.rpartition("/")
            if folder in inner and row.is_folder:
                inner[folder].add(name)
            elif folder in inner:
                files[folder][name] = row
        return {folder: FolderContent(files[folder], frozenset(inner[folder])) for folder in folders}

    def _rows_in(self, source: int, folders: Sequence[str]) -> Iterable[KnownFile]:
        """Return the known files in some folders, and all known folders."""
        if len(folders) > _FEW:
            return self.known_files(source)
        (spec,) = self._db.execute("SELECT spec FROM sources WHERE number = ?", (source,)).fetchone()
        rows = [*self._db.execute(f"{_SELECT} WHERE source = ? AND place < 0", (source,))]
        query = (
            f"{_SELECT} WHERE source = ? AND file != '' AND substr(file, 1, ?) = ?"
            " AND instr(substr(file, ? + 1), '/') = 0"
        )
        for folder in folders:
            prefix = folder[len(spec) + 1 :] + "/" if folder != spec else ""
            rows += self._db.execute(query, (source, len(prefix), prefix, len(prefix)))
        return _valid(rows)

    def next_place(self, source: int, place: int) -> int | None:
        """Return the position of the file behind a position of a source; None if there is none."""
        query = "SELECT min(place) FROM files WHERE source = ? AND place > ?"
        found = self._db.execute(query, (source, place)).fetchone()[0]
        return None if found is None else int(found)

    def can_change_single_files(self, source: int, reader: int) -> bool:
        """Return whether single files of a source can be indexed without comparing all.

        It needs that all were read with this reader, and none was left for the next comparison.
        """
        query = (
            "SELECT 1 FROM files WHERE source = ? AND file != '' AND (reader != ? OR documents = ?) LIMIT 1"
        )
        return self._db.execute(query, (source, reader, AGAIN)).fetchone() is None

    def notes_of_files(self, containing: str = "") -> list[Failure]:
        """Return what was not read of known files, or guessed; of files with this ASCII text in a note."""
        query = f"{_SELECT} WHERE notes != '[]' AND (? = '' OR instr(notes, ?)) {_ORDER}"
        rows = self._db.execute(query, (containing, containing))
        return [note for row in _valid(rows) for note in row.notes]

    def files_without_documents(self) -> list[KnownFile]:
        """Return the known files that gave no documents, with the reasons, in the order of their paths."""
        if not self.has_known_files():
            return []
        query = f"{_SELECT} WHERE documents = 0 AND file != '' AND notes != '[]' ORDER BY source, file"
        return list(_valid(self._db.execute(query)))

    def set_known_files(self, rows: Iterable[KnownFile], gone: Iterable[tuple[int, int]] = ()) -> None:
        """Store rows, and delete the rows with some (source, place)."""
        self._db.execute(_SCHEMA)
        self._db.execute("DROP TABLE IF EXISTS file_readings")  # of an earlier version
        self._db.executemany("DELETE FROM files WHERE source = ? AND place = ?", gone)
        specs = dict(self._db.execute("SELECT number, spec FROM sources").fetchall())
        self._db.executemany(
            f"INSERT OR REPLACE INTO files ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
            (_stored(row, specs.get(row.source)) for row in rows),
        )

    def set_stats(self, files: Iterable[tuple[KnownFile, bytes]]) -> None:
        """Store the stats of files whose content is as it was, unless they have been stored again since."""
        specs = dict(self._db.execute("SELECT number, spec FROM sources").fetchall())
        query = (
            "UPDATE files SET stat = ?, digest = ? WHERE source = ? AND place = ? AND file = ? AND stat = ?"
            " AND substr(digest, 1, length(?7)) = ?7"
        )
        self._db.executemany(query, (_settling(row, stat, specs.get(row.source)) for row, stat in files))

    def altered_files(self) -> list[tuple[int, int, str]]:
        """Return source, position and id of the known files whose rows do not match their checksums."""
        if not self.has_known_files():
            return []
        altered = []
        for row in self._db.execute(_BYTES):
            source, place, file, *_ = row
            whole, checksum = _split(row[_DIGEST])
            # An earlier version stored no checksums.
            if checksum and checksum != _checksum(*row[:_DIGEST], whole, *row[_DIGEST + 1 :]):
                altered.append((source, place, file.decode("utf-8", "replace")))
        return altered

    def read_again(self, documents: Iterable[tuple[int, int]]) -> None:
        """Mark the files of documents (source, position) that are removed or replaced by hand.

        The next build compares all files and reads these again.
        """
        if not self.has_known_files():
            return
        for source, place in documents:
            query = "SELECT max(place) FROM files WHERE source = ? AND place <= ?"
            (own,) = self._db.execute(query, (source, place)).fetchone()
            rows = self.known_files_at([(source, own)])
            self.set_known_files(replace(row, documents=AGAIN) for row in rows if not row.is_folder)

    def drop_known_files(self, source: int | None = None) -> None:
        """Forget the files of a source, or of all."""
        if self.has_known_files():
            where, values = ("", ()) if source is None else (" WHERE source = ?", (source,))
            self._db.execute(f"DELETE FROM files{where}", values)  # noqa: S608 - ours

    def files_of(self, names: Iterable[str]) -> dict[str, KnownFile]:
        """Return the known files to which documents belong, by document."""
        if not self.has_known_files():
            return {}
        found = {}
        for name in names:
            row = self._db.execute("SELECT source, place FROM documents WHERE id = ?", (name,)).fetchone()
            file = None if row is None else self._file_at(*row)
            if file is not None:
                found[name] = file
        return found

    def _file_at(self, source: int, place: int) -> KnownFile | None:
        query = f"{_SELECT} WHERE source = ? AND place <= ? ORDER BY place DESC LIMIT 1"
        found = next(_valid(self._db.execute(query, (source, place)).fetchall()), None)
        return None if found is None or found.is_folder else found


def _settling(row: KnownFile, stat: bytes, spec: str | None) -> tuple[Any, ...]:
    """Return the values by which `FileTable.set_stats` changes the row of a file."""
    digest = _stored(replace(row, stat=stat), spec)[_DIGEST]
    return (stat, digest, row.source, row.place, row.file, row.stat, row.digest)


def _is_same_size(stats: bytes, number: int, stat: bytes) -> bool:
    """Return whether a file has the size that it had; `number` is that of its stat among `stats`."""
    start = STAT_BYTES * number
    return stats[start : start + _SIZE_BYTES] == stat[:_SIZE_BYTES] and not is_missing(stat)


def _among(sources: Iterable[int]) -> str:
    """Return the condition that a row belongs to one of some sources."""
    return f"WHERE source IN ({', '.join(map(str, sorted(sources)))})"


def _checksum(*row: Any) -> bytes:
    """Return a checksum of the values of a row, whose texts are bytes."""
    return blake2b(repr(row).encode(), digest_size=_SUM_BYTES).digest()


def _stored(row: KnownFile, spec: str | None) -> tuple[Any, ...]:
    """Return the values to store: behind the hash of the content is a checksum of the row."""
    path = None if row.path == f"{spec}/{row.file}" else fsencode(row.path)
    notes = json.dumps([(one.document, one.code, one.message) for one in row.notes])
    about = (row.reader, row.documents)
    check = _checksum(
        *(row.source, row.place, row.file.encode(), path, row.stat, row.digest, *about, notes.encode())
    )
    return (row.source, row.place, row.file, path, row.stat, row.digest + check, *about, notes)


def _split(hashed: bytes) -> tuple[bytes, bytes]:
    """Return the hash of the content, which a folder does not have, and the checksum of the row."""
    length = DIGEST_BYTES if len(hashed) >= DIGEST_BYTES else 0
    return hashed[:length], hashed[length:]


def _valid(rows: Iterable[Sequence[Any] | None]) -> Iterator[KnownFile]:
    for row in rows:
        if row is None:
            continue
        *values, path, stat, digest, reader, documents, notes, spec = row
        try:
            source, place, file = values
            parts = () if notes == "[]" else tuple(Failure(*map(str, note)) for note in json.loads(notes))
            whole = fsdecode(path if path is not None else spec + b"/" + fsencode(file))
        except (TypeError, ValueError, RecursionError):
            continue
        hashed, checksum = _split(digest)
        own = (source, place, file.encode(), path, stat, hashed, reader, documents, notes.encode())
        if len(stat) == STAT_BYTES and checksum in (b"", _checksum(*own)):
            yield KnownFile(source, place, file, whole, stat, hashed, reader, documents, parts)
