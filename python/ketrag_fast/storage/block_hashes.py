"""The hashes of the blocks of a stage's larger files, so that a reader can verify the block it reads.

They are concatenated in one file of the stage, in the order of the file names. A file's digest in the
manifest is merged from its block hashes (BLAKE3 is a tree), so the file of hashes needs no checksum; if it
is missing or wrong, a reader hashes whole files instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ketrag_fast import _core
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import file_hashes
from ketrag_fast.storage.durable import link_or_copy, write_file
from ketrag_fast.storage.file_records import FileRecord, path_of

NAME: Final = "blocks.b3"
HEAD: Final = b"KETB3\x01\x0e\x00"
"""Magic bytes, the version of this layout, and the binary logarithm of the block size."""
BLOCK: Final = 1 << HEAD[6]
_HASH: Final = 32


def places(files: Mapping[str, FileRecord]) -> dict[str, tuple[int, int]]:
    """Return the byte range of the hashes of each file that has more than one block."""
    found, at = {}, len(HEAD)
    for name, record in sorted(files.items()):
        if record.bytes > BLOCK:
            end = at + _HASH * -(-record.bytes // BLOCK)
            found[name] = (at, end)
            at = end
    return found


def write(folder: Path, hashes: Mapping[str, bytes]) -> None:
    """Write the block hashes of all files (as returned by `file_hashes`), if there are any."""
    data = b"".join(hashes[name] for name in sorted(hashes))
    if data:
        write_file(folder / NAME, HEAD + data)


def carry(source: Path, target: Path, files: Mapping[str, FileRecord]) -> None:
    """Copy the hashes of a stage to its published folder; compute them again if they are wrong."""
    if not places(files):
        return
    if _right(source / NAME, files):
        link_or_copy(source / NAME, target / NAME)
    else:
        write(target, {name: file_hashes(path_of(target, name, files[name]))[1] for name in files})


def _right(path: Path, files: Mapping[str, FileRecord]) -> bool:
    try:
        data = read_regular(path, 1 << 32)
    except OSError:
        return False
    found = places(files)
    if not data.startswith(HEAD) or len(data) != max(end for _, end in found.values()):
        return False
    return all(
        _core.merge_hashes(data[start:end], files[name].bytes) == files[name].digest
        for name, (start, end) in found.items()
    )


def open_hashes(folder: Path, files: Mapping[str, FileRecord]) -> dict[str, tuple[_core.MappedFile, int]]:
    """Map the block hashes; return (mapping, start) per file with several blocks, nothing if damaged."""
    found = places(files)
    if not found:
        return {}
    size = max(end for _, end in found.values())
    try:
        mapped = _core.MappedFile(folder / NAME, size)
    except IndexDamaged:  # whole files are hashed instead
        return {}
    if bytes(memoryview(mapped)[: len(HEAD)]) != HEAD:
        return {}
    return {name: (mapped, start) for name, (start, _) in found.items()}
