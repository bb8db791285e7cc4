"""What the manifest says about one file of a stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RAW = "raw"
"""Stands in the place of a type for a file that is no array."""
_TYPE = re.compile(r"[<|][biuf][1248]|[<>]f16")
REPAIR = "run `ketrag index` again: whatever is damaged is made anew"


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
        shape = tuple(count(n) for n in data["shape"])
        dtype, digest = text(data["dtype"]), text(data["digest"])
        if dtype != RAW and not _TYPE.fullmatch(dtype):
            raise ValueError(f"{dtype!r} is no type of an array")
        return cls(count(data["bytes"]), digest, dtype, shape)


def count(value: Any) -> int:
    """A whole number of things, as JSON has it; ValueError for anything else."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no count")
    return value


def text(value: Any) -> str:
    """A text; ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    value.encode("utf-8")  # a lone surrogate, which JSON may hold, is a ValueError too
    return value


def path_of(folder: Path, name: str, record: FileRecord) -> Path:
    """Where an output lies."""
    return folder / (f"{name}.bin" if record.dtype == RAW else f"{name}.npy")
