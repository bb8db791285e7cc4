"""What the manifest says about one file of a stage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

RAW = "raw"
"""Stands in the place of a type for a file that is no array."""
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
        shape = tuple(int(n) for n in data["shape"])
        return cls(int(data["bytes"]), str(data["digest"]), str(data["dtype"]), shape)


def path_of(folder: Path, name: str, record: FileRecord) -> Path:
    """Where an output lies."""
    return folder / (f"{name}.bin" if record.dtype == RAW else f"{name}.npy")
