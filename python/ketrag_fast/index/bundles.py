"""Bundles: an index as one file."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.building.bundled_model import model_of, require_model
from ketrag_fast.errors import IndexMissing
from ketrag_fast.storage import bundle
from ketrag_fast.storage.layout import Layout


def write_bundle(path: Path, file: Path, *, replace: bool, with_model: bool) -> int:
    """Write the index at `path` into a file, with its embedding model if wanted; return its size."""
    layout = Layout(path)
    layout.require()
    model = model_of(layout) if with_model else None
    return bundle.bundle(layout, file, replace=replace, model=model)


def read_bundle(file: Path, path: Path) -> None:
    """Create the index at `path` from a file that `write_bundle` wrote."""
    if not file.exists():
        raise IndexMissing(f"no such file: {file}", hint="`ketrag bundle FILE -i DIR` writes one")
    bundle.unbundle(file, Layout(path), check=require_model)
