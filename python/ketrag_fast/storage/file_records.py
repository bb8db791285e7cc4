"""The manifest's record of one file of a stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RAW = "raw"
"""The type of a file that is not an array."""
_TYPE = re.compile(r"[<|][biuf][1248]|[<>]f16")
REPAIR = "run `ketrag index` again: it rebuilds whatever is damaged"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The manifest's record of one file: size in `bytes`, and `dtype` and `shape` of the unpacked values."""

    bytes: int
    digest: str
    dtype: str
    shape: tuple[int, ...]
    packed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `files` in the manifest."""
        about = {"bytes": self.bytes, "digest": self.digest, "dtype": self.dtype, "shape": list(self.shape)}
        return {**about, "packed": True} if self.packed else about

    @classmethod
    def from_json(cls, data: Any) -> FileRecord:
        """Parse an entry. Raises KeyError, TypeError or ValueError if it is invalid."""
        shape = tuple(count(n) for n in data["shape"])
        dtype, digest = text(data["dtype"]), text(data["digest"])
        if dtype != RAW and not _TYPE.fullmatch(dtype):
            raise ValueError(f"{dtype!r} is not an array type")
        packed = data.get("packed", False)
        if type(packed) is not bool or (packed and dtype == RAW):
            raise ValueError(f"{packed!r} does not say whether an array is packed")
        return cls(count(data["bytes"]), digest, dtype, shape, packed)


def count(value: Any) -> int:
    """Return a JSON value that must be a non-negative integer; raises ValueError for anything else."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a count")
    return value


def text(value: Any) -> str:
    """Return a JSON value that must be a string; raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    value.encode("utf-8")  # encoding a lone surrogate, which JSON allows, also raises ValueError
    return value


def path_of(folder: Path, name: str, record: FileRecord) -> Path:
    """Return the path of an output."""
    if record.packed:
        return folder / f"{name}.pack"
    return folder / (f"{name}.bin" if record.dtype == RAW else f"{name}.npy")
