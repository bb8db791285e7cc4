"""The files of an index that hold arrays."""

from __future__ import annotations

from pathlib import Path


def array_files(index: Path) -> list[Path]:
    """Return the arrays of all generations, plain and packed, by name."""
    return sorted(path for path in index.glob("gen-*/*/*") if path.suffix in (".npy", ".pack"))
