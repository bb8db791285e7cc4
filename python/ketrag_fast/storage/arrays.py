"""A stage's outputs as a folder of .npy files (format 1.0, C order, little endian, no pickle).

Larger arrays of unsigned integers are packed, as `NAME.pack` (rust/base/src/store/pack.rs), unless that saves
little; readers see no difference. An output may also be a file in another library's format: it is stored
unchanged as `NAME.bin`, under the same checksum.

`blocks.b3` has the hashes of the blocks of the larger files, in the order of their names, so that a reader
can verify the block it reads. A file's digest in the manifest is merged from its block hashes (BLAKE3 is a
tree), so the file of hashes needs no checksum; if it is missing or wrong, readers hash whole files instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast import _core
from ketrag_fast._core import MappedFile
from ketrag_fast.base.memory import map_threads
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexDamaged, InputError, KetragError
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.checksum import file_digest
from ketrag_fast.storage.durable import link_or_copy, replace_path, sync_file, write_file
from ketrag_fast.storage.io_errors import REPAIR, unreadable
from ketrag_fast.storage.manifest import RAW, FileRecord, path_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KINDS = "biuf"
_WRITERS = 4
_LONGEST_HEADER = 1 << 12
_PACKED_FROM = 1 << 14
"""Minimum size in bytes for packing an array; smaller arrays use a few disk blocks either way."""
_PACKED_TYPES = ("|u1", "<u4", "<u8")
_PIECE = 1 << 24
_MAGIC: Final = b"\x93NUMPY\x01\x00"
_HEADER: Final = re.compile(
    re.escape(_MAGIC) + rb"(..)\{'descr': '([<|][biuf]\d{1,2})', 'fortran_order': False,"
    rb" 'shape': \((|\d{1,19}(?:,|(?:, \d{1,19})+))\), \} *\n",
    re.DOTALL,
)
"""A header. NumPy would parse it with `ast.parse`, which fails in several threads before Python 3.11.8."""
_DIGITS: Final = 21
"""Width of the first dimension in a header, so that an array can grow; as in NumPy."""
_ALIGNED: Final = 64

BLOCKS: Final = "blocks.b3"
HEAD: Final = b"KETB3\x01\x0e\x00"
"""Magic bytes, the version of this layout, and the binary logarithm of the block size."""
BLOCK: Final = 1 << HEAD[6]
_HASH: Final = 32


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array without NumPy: its values in little endian, their type (such as `<u8`), and its shape."""

    data: bytes | memoryview
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RawFile:
    """A finished file that a stage returns as an output. It is moved, so it must be on the same disk."""

    path: Path


Written = Mapping[str, "Array"] | Mapping[str, "Array | RawFile"] | Mapping[str, Buffer]
"""Outputs of a stage by name."""


def write_arrays(folder: Path, arrays: Written, earlier: Arrays | None = None) -> dict[str, FileRecord]:
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
            record = FileRecord(0, "", RAW, (output.path.stat().st_size,))
            replace_path(output.path, path_of(folder, name, record))
        else:
            values = output if isinstance(output, Buffer) else _buffer(name, output)
            record = _write(folder, name, values, earlier.packed_path(name) if earlier is not None else None)
        path = path_of(folder, name, record)
        sync_file(path)
        digest, hashes = _core.hash_file(path)
        return replace(record, bytes=path.stat().st_size, digest=digest), hashes

    # Writing, syncing and hashing wait for the disk or release the GIL, so threads overlap them.
    made = dict(zip(names, map_threads(write, names, _WRITERS), strict=True))
    _write_hashes(folder, {name: hashes for name, (_, hashes) in made.items()})
    return {name: record for name, (record, _) in made.items()}


def _buffer(name: str, array: Array) -> Buffer:
    """Return an array as it is stored."""
    if array.dtype.kind not in _KINDS:
        raise InputError(f"{name}: arrays of {array.dtype} are not stored")
    import numpy as np

    little: Array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return Buffer(little.reshape(-1).view(np.uint8).data, little.dtype.str, little.shape)


def _write(folder: Path, name: str, array: Buffer, earlier: Path | None) -> FileRecord:
    """Write one array; return its record without a digest. `earlier` is its last packed file."""
    record = FileRecord(0, "", array.dtype, array.shape, packed=True)
    path = path_of(folder, name, record)
    if _may_be_packed(array):
        size = _core.pack_file(array.data, record.dtype, array.shape, path, earlier=earlier)
        if size is not None and 8 * size <= 7 * len(array.data):
            return record
        path.unlink(missing_ok=True)
    record = replace(record, packed=False)
    with path_of(folder, name, record).open("xb") as file:
        file.write(_header(array))
        file.write(array.data)
    return record


def _header(array: Buffer) -> bytes:
    """Return the header of an .npy file, version 1.0, as NumPy writes it.

    Spaces leave room for a longer first dimension, and align the values.
    """
    about = f"{{'descr': {array.dtype!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}"
    about += " " * (_DIGITS - len(repr(array.shape[0])) if array.shape else 0)
    length = len(_MAGIC) + 2 + len(about) + 1
    about += " " * (-length % _ALIGNED) + "\n"
    return _MAGIC + len(about).to_bytes(2, "little") + about.encode("latin-1")


def _may_be_packed(array: Buffer) -> bool:
    """Return whether an array is large integers or text. Queries map vector codes (2-d bytes) directly."""
    is_codes = len(array.shape) > 1 and array.dtype == "|u1"
    return len(array.data) >= _PACKED_FROM and array.dtype in _PACKED_TYPES and not is_codes


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


def read_array(path: Path, record: FileRecord, file: MappedFile | None = None) -> Array:
    """Return a read-only view of a file, paged in on demand, or the values of a packed array in memory.

    `file` is its mapping, if it was mapped before; then the path may have been deleted since.
    """
    if record.dtype == RAW:
        raise InputError(f"{path.name} is not an array")
    try:
        if record.packed:
            values: Array = _core.unpack_array(path if file is None else file)
            array = values.reshape(record.shape)
            array.flags.writeable = False
        else:
            array = _view(MappedFile(path) if file is None else file)
    except OSError as error:
        raise unreadable(error, path) from error
    except (KetragError, MemoryError):
        raise
    except (ValueError, TypeError, OverflowError) as error:  # an odd header, or values that do not fit it
        raise _invalid(error, path) from error
    if array.dtype.str != record.dtype or array.shape != record.shape:
        found = f"{array.dtype.str}{array.shape}"
        raise IndexDamaged(f"{path} holds {found}, expected {record.dtype}{record.shape}", hint=REPAIR)
    return array


def _view(file: MappedFile) -> Array:
    """Return the array of a .npy file as a view of its mapping."""
    import numpy as np

    data = memoryview(file)
    head = _HEADER.match(bytes(data[:_LONGEST_HEADER]))
    if head is None or head.end() != len(_MAGIC) + 2 + int.from_bytes(head[1], "little"):
        raise ValueError("it must be an array of numbers in C order, in version 1.0 of the format")
    shape = tuple(int(size) for size in head[3].split(b",") if size.strip())
    return np.frombuffer(data[head.end() :], head[2].decode()).reshape(shape)


def _invalid(error: Exception, path: Path) -> IndexDamaged:
    return IndexDamaged(f"cannot read {path}: {str(error)[:300]}", hint=REPAIR)


class Arrays(Mapping[str, "Array"]):
    """The arrays of one stage as arrays of NumPy; `columns` reads single values without it.

    `mapped` holds its files if they were mapped on opening. Otherwise each file is mapped on first
    access. A file whose blocks are verified on first read is verified as a whole for an array of NumPy, which
    does not report what it reads.
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
        if name not in self._views:
            record, file = self._records[name], self._files.get(name)
            if file is not None:
                file.verify()
            self._views[name] = read_array(self.path(name), record, file)
        return self._views[name]

    def __contains__(self, name: object) -> bool:
        """Whether an output exists; reads nothing."""
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def columns(self) -> Mapping[str, _core.Column]:
        """The same arrays, of which single values are read without NumPy."""
        return _Columns(self)

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
                raise _invalid(error, path) from error
            yield piece

    def path(self, name: str) -> Path:
        """Return the path of an output, an array or another file. A builder may have deleted the file."""
        return path_of(self.folder, name, self._records[name])

    def packed_path(self, name: str) -> Path | None:
        """Return the path of a packed array; None if there is no such array, or it is not packed."""
        record = self._records.get(name)
        return self.path(name) if record is not None and record.packed else None

    def file(self, name: str) -> MappedFile:
        """Return the mapped file of an output; raises KeyError if it was not mapped on opening."""
        return self._files[name]

    def source(self, name: str) -> MappedFile | Path:
        """Return the mapped file of an output, or its path if it was not mapped on opening."""
        file = self._files.get(name)
        return self.path(name) if file is None else file

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
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="ketrag-") as folder:
            copy = Path(folder) / path.name
            copy.write_bytes(file)
            yield copy


class _Columns(Mapping[str, _core.Column]):
    """The arrays of one stage. Only the blocks of the values that are read are verified and unpacked."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._opened: dict[str, _core.Column] = {}

    def __getitem__(self, name: str) -> _core.Column:
        column = self._opened.get(name)
        if column is None:
            column = self._opened[name] = _core.Column(self._arrays.source(name))
        return column

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def hash_ranges(files: Mapping[str, FileRecord]) -> dict[str, tuple[int, int]]:
    """Return where in `blocks.b3` the hashes of each file are that has more than one block."""
    found, at = {}, len(HEAD)
    for name, record in sorted(files.items()):
        if record.bytes > BLOCK:
            end = at + _HASH * -(-record.bytes // BLOCK)
            found[name] = (at, end)
            at = end
    return found


def _write_hashes(folder: Path, hashes: Mapping[str, bytes]) -> None:
    data = b"".join(hashes[name] for name in sorted(hashes))
    if data:
        write_file(folder / BLOCKS, HEAD + data)


def carry_hashes(source: Path, target: Path, files: Mapping[str, FileRecord]) -> None:
    """Copy the hashes of a stage to its published folder; compute them again if they are wrong."""
    if not hash_ranges(files):
        return
    if _are_right(source / BLOCKS, files):
        link_or_copy(source / BLOCKS, target / BLOCKS)
    else:
        _write_hashes(
            target, {name: _core.hash_file(path_of(target, name, files[name]))[1] for name in files}
        )


def _are_right(path: Path, files: Mapping[str, FileRecord]) -> bool:
    try:
        data = read_regular(path, 1 << 32)
    except OSError:
        return False
    found = hash_ranges(files)
    if not data.startswith(HEAD) or len(data) != max(end for _, end in found.values()):
        return False
    return all(
        _core.merge_hashes(data[start:end], files[name].bytes) == files[name].digest
        for name, (start, end) in found.items()
    )


def check_hashes(folder: Path, files: Mapping[str, FileRecord]) -> None:
    """Raise IndexDamaged if the block hashes of a stage do not belong to its files."""
    if hash_ranges(files) and not _are_right(folder / BLOCKS, files):
        raise IndexDamaged(
            f"{folder / BLOCKS} does not match the files that it has hashes of",
            hint="queries read whole files to verify them until the next build that changes the index",
        )


def open_hashes(folder: Path, files: Mapping[str, FileRecord]) -> dict[str, tuple[MappedFile, int]]:
    """Map the block hashes; return (mapping, start) per file with several blocks, nothing if damaged."""
    found = hash_ranges(files)
    if not found:
        return {}
    try:
        mapped = MappedFile(folder / BLOCKS, max(end for _, end in found.values()))
    except IndexDamaged:  # whole files are hashed instead
        return {}
    if bytes(memoryview(mapped)[: len(HEAD)]) != HEAD:
        return {}
    return {name: (mapped, start) for name, (start, _) in found.items()}
