"""A stage's outputs as a folder of .npy files (format 1.0, C order, little endian, no pickle).

Larger arrays of unsigned integers are packed, as `NAME.pack` (rust/base/src/store/pack.rs), unless that saves
little; readers see no difference. An output may also be a file in another library's format: it is stored
unchanged as `NAME.bin`, under the same checksum.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast._core import MappedFile
from ketrag_fast.errors import IndexDamaged, InputError
from ketrag_fast.storage import block_hashes as blocks
from ketrag_fast.storage.checksum import file_digest, file_hashes
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.file_records import RAW, REPAIR, FileRecord, path_of
from ketrag_fast.storage.io_errors import unreadable
from ketrag_fast.storage.threads import map_threads

Array = NDArray[Any]
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KINDS = "biuf"
_WRITERS = 4
_LONGEST_HEADER = 1 << 12
_PACKED_FROM = 1 << 14
"""Minimum size in bytes for packing an array; smaller arrays use a few disk blocks either way."""
_PACKED_TYPES = ("|u1", "<u4", "<u8")


@dataclass(frozen=True, slots=True)
class RawFile:
    """A finished file that a stage returns as an output. It is moved, so it must be on the same disk."""

    path: Path


_PIECE = 1 << 24


def _move_file(path: Path, file: RawFile) -> None:
    """Move and sync a finished file."""
    replace_path(file.path, path)
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _write(folder: Path, name: str, array: Array, earlier: Path | None) -> FileRecord:
    """Write and sync one array; return its record without a digest. `earlier` is its last packed file."""
    if array.dtype.kind not in _KINDS:
        raise InputError(f"{name}: arrays of {array.dtype} are not stored")
    little: Array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    record = FileRecord(0, "", little.dtype.str, little.shape, packed=True)
    path = path_of(folder, name, record)
    if _pack(little, path, earlier):
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        return record
    record = replace(record, packed=False)
    with path_of(folder, name, record).open("xb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(little))
        if little.size:  # ndarray.tofile hides the system's reason when the disk is full
            file.write(_bytes_of(little).data)
        file.flush()
        os.fsync(file.fileno())
    return record


def _pack(array: Array, path: Path, earlier: Path | None) -> bool:
    """Write the packed form of an array if that saves 1/8 of its size; return whether it was written."""
    if array.nbytes < _PACKED_FROM or array.dtype.str not in _PACKED_TYPES:
        return False
    if array.ndim > 1 and array.dtype == np.uint8:  # queries map vector codes directly
        return False
    size = _core.pack_file(_bytes_of(array), array.dtype.str, array.shape, path, earlier=earlier)
    if size is None:
        return False
    if 8 * size > 7 * array.nbytes:
        path.unlink()
        return False
    return True


def _bytes_of(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def write_arrays(
    folder: Path, arrays: Mapping[str, Array | RawFile], earlier: Arrays | None = None
) -> dict[str, FileRecord]:
    """Write and sync all arrays of a stage into an existing folder; return records sorted by name.

    `earlier` are intact arrays of the same stage; blocks that they already have compressed are reused.
    """
    for name in arrays:
        if not _NAME.fullmatch(name):
            raise InputError(f"the name of an array must match {_NAME.pattern}, got {name!r}")
    names = sorted(arrays)

    def write(name: str) -> tuple[FileRecord, bytes]:
        output = arrays[name]
        if isinstance(output, RawFile):
            path = folder / f"{name}.bin"
            _move_file(path, output)
            record = FileRecord(0, "", RAW, (path.stat().st_size,))
        else:
            record = _write(folder, name, output, earlier.packed_path(name) if earlier is not None else None)
            path = path_of(folder, name, record)
        digest, hashes = file_hashes(path)
        return replace(record, bytes=path.stat().st_size, digest=digest), hashes

    # Writing, syncing and hashing wait for the disk or release the GIL, so threads overlap them.
    made = dict(zip(names, map_threads(write, names, _WRITERS), strict=True))
    blocks.write(folder, {name: hashes for name, (_, hashes) in made.items()})
    return {name: record for name, (record, _) in made.items()}


def check_file(path: Path, record: FileRecord, *, full: bool) -> None:
    """Raise IndexDamaged unless the file has the size and (if `full`) the checksum of its record."""
    try:
        size = path.stat().st_size
        if size != record.bytes:
            raise IndexDamaged(f"{path} has {size} bytes, expected {record.bytes}", hint=REPAIR)
        if full and file_digest(path) != record.digest:
            raise IndexDamaged(f"{path} is altered: its checksum does not match", hint=REPAIR)
    except OSError as error:
        raise unreadable(error, path) from error


def map_array(path: Path, record: FileRecord) -> Array:
    """Return a read-only view of the file, paged in on demand and shared between processes.

    A packed array is unpacked into memory.
    """
    if record.packed:
        return _unpack(path, record, path)
    if record.dtype == RAW:
        raise InputError(f"{path.name} is not an array")
    try:
        if 0 in record.shape:  # nothing to map
            with path.open("rb") as file:
                array: Array = npy.read_array(file, allow_pickle=False)
            array.flags.writeable = False
        else:
            array = npy.open_memmap(path, mode="r").view(np.ndarray)
    except OSError as error:
        raise unreadable(error, path) from error
    except Exception as error:
        raise _unclear(error, path) from error
    return _check_recorded(array, path, record)


def view_array(path: Path, record: FileRecord, file: MappedFile) -> Array:
    """Return a view like `map_array` of a file that is already mapped and may have been deleted."""
    if record.packed:
        return _unpack(path, record, file)
    if record.dtype == RAW:
        raise InputError(f"{path.name} is not an array")
    data = memoryview(file)
    head = BytesIO(data[:_LONGEST_HEADER])
    try:
        version = npy.read_magic(head)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(head)
        if fortran or dtype.hasobject:
            raise ValueError("it must be in C order and must not contain objects")
        array: Array = np.frombuffer(data[head.tell() :], dtype).reshape(shape)
    except Exception as error:
        raise _unclear(error, path) from error
    return _check_recorded(array, path, record)


def _unpack(path: Path, record: FileRecord, file: MappedFile | Path) -> Array:
    """Return the values of a packed array, read-only."""
    values: Array = _core.unpack_array(file)
    try:
        array = values.reshape(record.shape)
    except ValueError as error:
        raise _unclear(error, path) from error
    array.flags.writeable = False
    return _check_recorded(array, path, record)


def _unclear(error: Exception, path: Path) -> Exception:
    """Convert an error that NumPy raised for a header; it may have any type, as NumPy evaluates literals."""
    if isinstance(error, MemoryError):
        return error
    return IndexDamaged(f"cannot read {path}: {str(error)[:300]}", hint=REPAIR)


def _check_recorded(array: Array, path: Path, record: FileRecord) -> Array:
    if array.dtype.str != record.dtype or array.shape != record.shape:
        raise IndexDamaged(
            f"{path} holds {array.dtype.str}{array.shape}, expected {record.dtype}{record.shape}",
            hint=REPAIR,
        )
    return array


class Arrays(Mapping[str, Array]):
    """The arrays of one stage. `mapped` holds its files if they were mapped on opening.

    Otherwise each file is mapped on first access. A file whose blocks are verified on first read is
    verified as a whole here, because NumPy does not report which blocks it reads.
    """

    def __init__(
        self,
        folder: Path,
        records: Mapping[str, FileRecord],
        mapped: Mapping[str, MappedFile] | None = None,
    ) -> None:
        self.folder = folder
        self._records = records
        self._files = mapped if mapped is not None else {}
        self._views: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        found = self._views.get(name)
        if found is None:
            path, record = self.path(name), self._records[name]
            file = self._files.get(name)
            if file is None:
                found = map_array(path, record)
            else:
                file.verify()
                found = view_array(path, record, file)
            self._views[name] = found
        return found

    def unread(self) -> Arrays:
        """Return a copy that caches unpacked arrays separately, so that they are freed with the copy."""
        return type(self)(self.folder, self._records, self._files)

    def read_bytes(self, name: str, start: int, stop: int) -> Array:
        """Return a range of a byte array; only the blocks in that range are verified and unpacked."""
        file = self._files.get(name)
        if file is None:
            return self[name][start:stop]
        return _core.read_bytes(file, start, stop)

    def packed_bytes(self, name: str) -> int:
        """Return the length of a packed array of bytes; 0 for other arrays."""
        record = self._records[name]
        return record.shape[0] if record.packed and record.dtype == "|u1" and len(record.shape) == 1 else 0

    def pieces(self, name: str) -> Iterator[Array]:
        """Yield a packed array of bytes in pieces of 16 MiB."""
        path, size = self.path(name), self.packed_bytes(name)
        for start in range(0, size, _PIECE):
            try:
                piece = _core.read_bytes(path, start, min(start + _PIECE, size))
            except OSError as error:
                raise unreadable(error, path) from error
            except InputError as error:  # the file is shorter than its record declares
                raise _unclear(error, path) from error
            yield piece

    def path(self, name: str) -> Path:
        """Return the path of an output, an array or another file. A builder may have deleted the file."""
        return path_of(self.folder, name, self._records[name])

    def packed_path(self, name: str) -> Path | None:
        """Return the path of a packed array; None if there is no such array, or it is not packed."""
        record = self._records.get(name)
        return self.path(name) if record is not None and record.packed else None

    def file(self, name: str) -> MappedFile:
        """Return the mapped file of an array; raises KeyError if the arrays were not mapped on opening."""
        return self._files[name]

    def mapped(self) -> Iterator[tuple[str, MappedFile]]:
        """Yield the names and files of the arrays that were mapped on opening."""
        for name, file in self._files.items():
            if self._records[name].dtype != RAW:
                yield name, file

    @contextmanager
    def named(self, name: str) -> Iterator[Path]:
        """Yield a path of an output for a library that opens files by name.

        If a builder has deleted the generation since it was opened, the path is that of a temporary copy.
        """
        path, file = self.path(name), self._files.get(name)
        if file is None or path.exists():
            yield path
            return
        file.verify()
        with TemporaryDirectory(prefix="ketrag-") as folder:
            copy = Path(folder) / path.name
            copy.write_bytes(file)
            yield copy

    def __contains__(self, name: object) -> bool:
        """Whether an output exists; reads nothing."""
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
