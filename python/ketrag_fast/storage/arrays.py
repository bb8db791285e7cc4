"""A stage's outputs as a folder of .npy files (format 1.0, C order, little endian, no pickle).

An output may also be a file in a format of its own, which another library reads: it is kept as it is,
as `NAME.bin`, under the same checksum.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged, InputError
from ketrag_fast.storage.checksum import file_digest

Array = NDArray[Any]
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KINDS = "biuf"
RAW = "raw"
"""Stands in the place of a type for a file that is no array."""
_WRITERS = 4
_REPAIR = "run `ketrag index` again: whatever is damaged is made anew"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What the manifest says about one file."""

    bytes: int
    digest: str
    dtype: str
    shape: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """One entry of `files` in the manifest."""
        return {"bytes": self.bytes, "digest": self.digest, "dtype": self.dtype, "shape": list(self.shape)}

    @classmethod
    def from_json(cls, data: Any) -> FileRecord:
        """Raises KeyError, TypeError or ValueError where the entry makes no sense."""
        shape = tuple(int(n) for n in data["shape"])
        return cls(int(data["bytes"]), str(data["digest"]), str(data["dtype"]), shape)


@dataclass(frozen=True, slots=True)
class RawFile:
    """A finished file that a stage hands over as an output. It is moved, so it must lie on the same disk."""

    path: Path


def path_of(folder: Path, name: str, record: FileRecord) -> Path:
    """Where an output lies."""
    return folder / (f"{name}.bin" if record.dtype == RAW else f"{name}.npy")


def take_file(path: Path, file: RawFile) -> FileRecord:
    """Moves and syncs a finished file."""
    file.path.rename(path)
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())
    size = path.stat().st_size
    return FileRecord(size, file_digest(path), RAW, (size,))


def write_array(path: Path, array: Array) -> FileRecord:
    """Writes and syncs one array."""
    if array.dtype.kind not in _KINDS:
        raise InputError(f"{path.name}: arrays of {array.dtype} are not stored")
    little: Array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    with path.open("xb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(little))
        if little.size:  # NumPy's own tofile hides the system's reason when the disk is full
            file.write(little.reshape(-1).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())
    return FileRecord(path.stat().st_size, file_digest(path), little.dtype.str, little.shape)


def write_arrays(folder: Path, arrays: Mapping[str, Array | RawFile]) -> dict[str, FileRecord]:
    """Writes and syncs all arrays of a stage into an existing folder; records in the order of names."""
    for name in arrays:
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name for an array")
    names = sorted(arrays)

    def write(name: str) -> FileRecord:
        output = arrays[name]
        if isinstance(output, RawFile):
            return take_file(folder / f"{name}.bin", output)
        return write_array(folder / f"{name}.npy", output)

    # Writing, syncing and hashing wait for the disk or run without the interpreter: they overlap.
    with ThreadPoolExecutor(_WRITERS) as pool:
        files = list(pool.map(write, names))
    return dict(zip(names, files, strict=True))


def check_file(path: Path, record: FileRecord, *, full: bool) -> None:
    """IndexDamaged unless the file has the size and (if `full`) the checksum of its record."""
    try:
        size = path.stat().st_size
        if size != record.bytes:
            raise IndexDamaged(f"{path} has {size} bytes where {record.bytes} were written", hint=_REPAIR)
        if full and file_digest(path) != record.digest:
            raise IndexDamaged(f"{path} is altered: its checksum does not match", hint=_REPAIR)
    except OSError as error:
        raise IndexDamaged(f"cannot read {path}: {error.strerror}", hint=_REPAIR) from error


def map_array(path: Path, record: FileRecord) -> Array:
    """A read-only view of the file, paged in on demand and shared between processes."""
    if record.dtype == RAW:
        raise InputError(f"{path.name} is no array")
    try:
        if 0 in record.shape:  # nothing to map
            with path.open("rb") as file:
                array: Array = npy.read_array(file, allow_pickle=False)
            array.flags.writeable = False
        else:
            array = npy.open_memmap(path, mode="r").view(np.ndarray)
    except (OSError, ValueError, EOFError) as error:
        raise IndexDamaged(f"cannot read {path}: {error}", hint=_REPAIR) from error
    if array.dtype.str != record.dtype or array.shape != record.shape:
        raise IndexDamaged(
            f"{path} holds {array.dtype.str}{array.shape} where {record.dtype}{record.shape} was written",
            hint=_REPAIR,
        )
    return array


class Arrays(Mapping[str, Array]):
    """The arrays of one stage, each mapped when it is first asked for."""

    def __init__(self, folder: Path, records: Mapping[str, FileRecord]) -> None:
        self.folder = folder
        self._records = records
        self._mapped: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        found = self._mapped.get(name)
        if found is None:
            found = map_array(self.path(name), self._records[name])
            self._mapped[name] = found
        return found

    def path(self, name: str) -> Path:
        """Where an output lies: an array or a file of another kind."""
        return path_of(self.folder, name, self._records[name])

    def arrays(self) -> Iterator[tuple[str, Path]]:
        """The names and paths of those that are arrays."""
        for name, record in self._records.items():
            if record.dtype != RAW:
                yield name, self.path(name)

    def __contains__(self, name: object) -> bool:
        """Without mapping it: its file may be gone where a newer generation has taken over."""
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
