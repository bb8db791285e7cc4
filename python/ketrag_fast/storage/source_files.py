"""The files of the sources: which file a document came from, and which files have changed since.

`sources.stamps` has the sizes and times of the source files, by which a query recognises changes without
reading them. It is not a part of a generation, which has no times, and is neither copied nor bundled, because
elsewhere there are other files. Without it nothing is known about the sources, which is not an error.

A line of JSON lists the sources. Then come the paths of their folders and files, each with a zero byte at its
end, size and time of each, and hashes of the paths of files of which the index has nothing.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from os import fsdecode, fsencode
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.storage.durable import replace_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.storage.layout import Layout

_FORMAT: Final = 1
_COARSE: Final = 1_000_000_000
_FINE: Final = 20_000_000
"""Resolution of file times in ns: `_COARSE` if times are whole seconds, otherwise `_FINE`."""
UNKNOWN: Final = -2
"""Stands for the time of a file that changed so recently that the next change may have the same time."""

Stamp = tuple[int, int]
"""Size in bytes and time of change in ns."""


@dataclass(slots=True)
class SourceStamps:
    """The files and folders of a source when it was read.

    `folders` include the files that control which files are excluded. `others` are hashes of the paths of
    files without documents. `is_complete` is whether a new file changes the time of one of the folders.
    """

    spec: str
    folders: dict[str, Stamp] = field(default_factory=dict)
    files: dict[str, Stamp] = field(default_factory=dict)
    others: set[int] = field(default_factory=set)
    is_complete: bool = True


def stamps_of(paths: Sequence[str], now: int) -> list[Stamp]:
    """Return size and time of files at the time `now` (ns); (-1, -1) for a missing file."""
    found = _core.file_stamps(_packed(paths)).tolist()
    return [(size, _settled(time, now)) for size, time in found]


def _settled(time: int, now: int) -> int:
    margin = _FINE if time % _COARSE else 2 * _COARSE
    return time if time < 0 or now - time > margin else UNKNOWN


def path_hash(path: str) -> int:
    """Return a 64-bit hash of a path."""
    return int.from_bytes(blake2b(fsencode(path), digest_size=8).digest(), "little")


def _packed(paths: Iterable[str]) -> bytes:
    return b"".join(fsencode(path) + b"\0" for path in paths)


def write_stamps(layout: Layout, sources: Sequence[SourceStamps], reader: str) -> None:
    """Store the stamps of all sources, with the version of the file readers."""
    head = {
        "format": _FORMAT,
        "reader": reader,
        "sources": [
            [one.spec, len(one.folders), len(one.files), len(one.others), one.is_complete] for one in sources
        ],
    }
    paths = b"".join(_packed([*one.folders, *one.files]) for one in sources)
    stamps = [stamp for one in sources for stamp in (*one.folders.values(), *one.files.values())]
    others = [number for one in sources for number in sorted(one.others)]
    line = json.dumps({**head, "bytes": len(paths)}).encode() + b"\n"
    numbers = np.array(stamps, np.int64).tobytes() + np.array(others, np.uint64).tobytes()
    replace_file(layout.stamps, line + paths + numbers)


@dataclass(frozen=True, slots=True)
class StoredStamps:
    """The stamps of an index in the form in which they are stored."""

    reader: str
    sources: Sequence[tuple[str, int, int, int, bool]]
    """Spec, numbers of folders, files and others, and whether it is complete."""
    paths: bytes
    stamps: NDArray[np.int64]
    others: NDArray[np.uint64]

    def unpacked(self) -> list[SourceStamps]:
        """Return the stamps of each source."""
        names = self.paths.split(b"\0")[:-1]
        rows = list(map(tuple, self.stamps.tolist()))
        found, at, other = [], 0, 0
        for spec, folders, files, others, is_complete in self.sources:
            texts = [fsdecode(name) for name in names[at : at + folders + files]]
            own: list[Any] = rows[at : at + folders + files]
            found.append(
                SourceStamps(
                    spec,
                    dict(zip(texts[:folders], own[:folders], strict=True)),
                    dict(zip(texts[folders:], own[folders:], strict=True)),
                    set(self.others[other : other + others].tolist()),
                    is_complete,
                )
            )
            at += folders + files
            other += others
        return found

    def is_changed(self, path: str) -> bool:
        """Return whether a source file has changed; False for a path that is not a source file."""
        row = self._row(path)
        if row is None:
            return False
        now = _core.file_stamps(_packed([path]))[0]
        size, time = self.stamps[row].tolist()
        return bool(now[0] >= 0 and (now[0] != size or time not in (UNKNOWN, now[1])))

    def time_of(self, path: str) -> int | None:
        """Return the last change time (ns) of a source file; None if unknown or not a source file."""
        row = self._row(path)
        time = UNKNOWN if row is None else int(self.stamps[row, 1])
        return time if time >= 0 else None

    def _row(self, path: str) -> int | None:
        """Return the row of a path; None for an unknown path."""
        name = fsencode(path) + b"\0"
        at = 0 if self.paths.startswith(name) else self.paths.find(b"\0" + name) + 1
        if at == 0 and not self.paths.startswith(name):
            return None
        return self.paths.count(b"\0", 0, at)


def read_stamps(layout: Layout) -> StoredStamps | None:
    """Return the stored stamps; None if there are none, or they cannot be read."""
    try:
        data = read_regular(layout.stamps)
        line, _, rest = data.partition(b"\n")
        head = json.loads(line)
        if head["format"] != _FORMAT:
            return None
        sources = [(str(a), int(b), int(c), int(d), bool(e)) for a, b, c, d, e in head["sources"]]
        count = sum(folders + files for _, folders, files, *_ in sources)
        size = int(head["bytes"])
        paths, numbers = rest[:size], rest[size:]
        if paths.count(b"\0") != count or len(numbers) != 16 * count + 8 * sum(row[3] for row in sources):
            return None
        stamps = np.frombuffer(numbers, np.int64, 2 * count).reshape(count, 2)
        return StoredStamps(
            str(head["reader"]), sources, paths, stamps, np.frombuffer(numbers, np.uint64, offset=16 * count)
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def merged_stamps(
    before: StoredStamps | None, new: Mapping[str, SourceStamps], specs: Iterable[str]
) -> list[SourceStamps]:
    """Return stamps of all sources in order; sources not read now keep their earlier stamps."""
    old = {} if before is None else {one.spec: one for one in before.unpacked()}
    return [found for spec in specs if (found := new.get(spec) or old.get(spec)) is not None]


def base_of(spec: str) -> Path:
    """Return the file or folder of a source; for a glob, the folder before its first pattern."""
    base = Path(spec)
    while glob.has_magic(str(base)) and not base.exists():
        base = base.parent
    return base


def file_of(spec: str, name: str) -> Path | None:
    """Return the file that a document id came from, or None if it no longer exists.

    An id may begin with the end of its source's path, which distinguishes it from ids of other sources.
    """
    base = base_of(spec)
    if base.is_file():
        return base
    parts = name.split("/")
    counts = (count for count in range(1, len(parts)) if base.parts[-count:] == tuple(parts[:count]))
    inner = next(("/".join(parts[count:]) for count in counts), None)
    return _file_below(base, name) or (None if inner is None else _file_below(base, inner))


def _file_below(base: Path, name: str) -> Path | None:
    parts = name.split("/")
    while parts:
        for last in dict.fromkeys((parts[-1], parts[-1].rpartition("#")[0], parts[-1].rpartition(":")[0])):
            path = base.joinpath(*parts[:-1], last) if last else base
            if path != base and path.is_file():
                return path
        parts.pop()
    return None
