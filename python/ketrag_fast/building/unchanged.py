"""Recognise the files of a source that have not changed since they were read.

Size, times and inode are compared first, then the hash of the content. Hashes are taken before a file is
read: if it is written meanwhile, its documents are newer than its hash, and the next build reads it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePath
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.hashes import blake2b
from ketrag_fast.readers import SourceFile, readers_version
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.readers.files import has_companion
from ketrag_fast.readers.repository import top_of
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.known_files import GAP, NO_DIGEST, KnownFile, digests_of, size_of, stats_of
from ketrag_fast.types import Failure

_TOGETHER: Final = 256
_TOGETHER_BYTES: Final = 32 << 20
"""Bounds of the files that are hashed together: their number and their bytes. A stop waits for them."""
REMOVED: Final = "removed"
"""Code of the note that a file has documents that were removed, which every build reports."""
IN_USE: Final = "is already in use; the first document with it is kept"
"""How the message ends that a document was not read because another one has its id."""
_SHARD_BITS: Final = 32
"""Bits for the number of an item within its file in an index of a shard; the file's number is above them."""


def reader_number(settings: Settings, spec: str) -> int:
    """Return a hash of what decides what the files of a source give, besides their contents.

    These are versions and settings of the readers, and whether the source is in a Git repository.
    """
    limits = (settings.read_text, settings.read_seconds, settings.read_memory)
    ocr = ""
    if settings.ocr:
        from ketrag_fast.readers.ocr import check_ocr

        ocr = f" {settings.ocr} {check_ocr(settings.ocr)}"
    about = f"{readers_version()} {settings.fallback_encoding} {limits} {settings.hidden}"
    data = f"{about} {settings.generated}{ocr} {top_of(spec) is not None}".encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


@dataclass(slots=True)
class FileState:
    """A file that the source has now.

    Attributes:
        row: What is known of it from the build that read it last; None for a new file.
        stat, digest: What is known of it now; the digest is empty if it was not needed.
        documents: Ids of its stored documents, in order.
        place: First position of its documents, once that is decided.
        notes: What reading it reported.
        count: Number of its documents now.
    """

    path: str
    row: KnownFile | None
    stat: bytes = b""
    digest: bytes = b""
    documents: Sequence[str] = ()
    place: int | None = None
    notes: list[Failure] = field(default_factory=list)
    count: int = 0
    is_lost: bool = False
    """Whether nothing may be stored of the file, because it was purged."""


class FileLedger:
    """The files of one source, with what is known of them.

    Attributes:
        files: The files by their ids, in order.
        reader: The hash of `reader_number`.
    """

    def __init__(
        self,
        source: int,
        before: Iterable[KnownFile],
        paths: Mapping[str, str],
        documents: Mapping[str, Sequence[str]],
        reader: int,
        *,
        root: Path | None,
        thorough: bool = False,
    ) -> None:
        """Look up files by id and path; `documents` are the ids of the stored documents of each file.

        With `root`, files are hashed only if they are inside that folder after all links.
        With `thorough`, the contents of all files are compared by their hashes.
        """
        self._source, self.reader, self._root, self._thorough = source, reader, root, thorough
        self._before = list(before)
        rows = {row.file: row for row in self._before if not row.is_folder}
        self.files = {
            name: FileState(path, rows.get(name), stat, documents=documents.get(name, ()))
            for (name, path), stat in zip(paths.items(), stats_of(list(paths.values())), strict=True)
        }
        self._unhashed = {
            name: state
            for name, state in self.files.items()
            if thorough or state.row is None or not self._is_same(state)
        }
        self._order = list(self.files)
        self._following = self._following_places()
        self._at, self._last = 0, -1

    def _is_same(self, state: FileState) -> bool:
        row = state.row
        return row is not None and row.stat == state.stat and row.is_settled

    def digest_of(self, name: str) -> bytes:
        """Return the hash of a file; b"" if it is as it was. Hashes the next files, too, in parallel."""
        if name in self._unhashed:
            some, size = [self._unhashed.pop(name)], 0
            for other in list(islice(self._unhashed, _TOGETHER)):
                if size < _TOGETHER_BYTES and PurePath(other).suffix.lower() in BY_SUFFIX:
                    some.append(self._unhashed.pop(other))
                    size += size_of(some[-1].stat)
            digests = digests_of([state.path for state in some], self._root)
            for state, digest in zip(some, digests, strict=True):
                state.digest = digest
        return self.files[name].digest

    def is_unchanged(self, file: SourceFile, known: Mapping[str, Known]) -> bool:
        """Return whether reading a file again would give its stored documents."""
        state = self.files[file.id]
        row = state.row
        if row is None or row.reader != self.reader or row.documents != len(state.documents):
            return False
        if any(not known[name].content for name in state.documents) or has_companion(state.path):
            return False
        if any(is_repeated(note) for note in row.notes):
            return False  # the id may be free now
        codes = {note.code for note in row.notes}
        if REMOVED in codes or (not row.documents and "document" in codes):
            return False  # so that it is reported again, and what failed is tried again
        if not self._thorough and self._is_same(state):
            return True
        return row.digest != NO_DIGEST and self.digest_of(file.id) == row.digest

    def is_unreadable(self, file: SourceFile) -> bool:
        """Return whether a file whose documents are stored cannot be read now."""
        state = self.files[file.id]
        return bool(state.documents) and self.digest_of(file.id) == NO_DIGEST

    def place_of(self, name: str, order: int | None = None) -> int:
        """Decide the first position of the documents of a file, and of all files before it.

        Files are placed in order. A known file keeps its position if that is behind the documents before it.
        `order` is the number of the file if all machines must agree on its position.
        """
        while True:
            here = self._order[self._at]
            state, following = self.files[here], self._following[self._at]
            self._at += 1
            if order is not None:
                state.place = max(order << _SHARD_BITS, self._last + 1) if here == name else self._last + 1
            elif state.row is not None and state.row.place > self._last:
                state.place = state.row.place
            else:
                room = GAP if following is None or following <= self._last else (following - self._last) // 2
                state.place = self._last + max(1, min(room, GAP))
            self._last = state.place
            if here == name:
                return state.place

    def end(self, place: int) -> None:
        """Note the position behind the last document of the file that was placed last."""
        self._last = max(self._last, place - 1)

    def place_rest(self) -> None:
        """Decide the positions of the files that are left."""
        if self._at < len(self._order):
            self.place_of(self._order[-1])

    def _following_places(self) -> list[int | None]:
        """Return for each file the position of the next known file."""
        found: list[int | None] = []
        following = None
        for state in reversed(self.files.values()):
            found.append(following)
            following = following if state.row is None else state.row.place
        return found[::-1]

    def rows(self, folders: Sequence[str], folder_stats: Sequence[bytes]) -> list[KnownFile]:
        """Return the new rows of the source."""
        rows = [
            KnownFile(self._source, -1 - number, "", path, stat)
            for number, (path, stat) in enumerate(zip(folders, folder_stats, strict=True))
        ]
        for name, state in self.files.items():
            if not state.is_lost:
                digest = state.digest or (NO_DIGEST if state.row is None else state.row.digest)
                row = KnownFile(
                    *(self._source, state.place or 0, name, state.path, state.stat, digest, self.reader),
                    state.count,
                    tuple(state.notes),
                )
                rows.append(row)
        return rows

    def keep(self, name: str) -> None:
        """Keep what is known of a file that cannot be read now; once it can, its stat differs."""
        state = self.files[name]
        if state.row is not None:
            state.digest = state.row.digest


def escaped_id(name: str) -> str:
    """Return the id of a document as failures name it."""
    return name.encode("utf-8", "backslashreplace").decode()


def is_repeated(note: Failure) -> bool:
    """Return whether a document was not read because another one has its id."""
    return note.message.endswith(IN_USE)


def documents_of(rows: Iterable[KnownFile], stored: Iterable[tuple[str, Known]]) -> dict[str, list[str]]:
    """Return the documents of each file of a source: those from its position to that of the next file."""
    starts = sorted((row.place, row.file) for row in rows if not row.is_folder)
    found: dict[str, list[str]] = {file: [] for _, file in starts}
    at = -1
    for place, name in sorted((one.place, name) for name, one in stored):
        while at + 1 < len(starts) and starts[at + 1][0] <= place:
            at += 1
        if at >= 0:
            found[starts[at][1]].append(name)
    return found


def changed_rows(
    before: Iterable[KnownFile], now: Iterable[KnownFile]
) -> tuple[list[KnownFile], list[tuple[int, int]]]:
    """Return the rows to write and the keys of those to delete, so that `before` becomes `now`."""
    old = {(row.source, row.place): row for row in before}
    new = {(row.source, row.place): row for row in now}
    return [row for key, row in new.items() if old.get(key) != row], [key for key in old if key not in new]
