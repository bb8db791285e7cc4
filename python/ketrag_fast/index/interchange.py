"""Export to and import from the formats of other programs.

The package `interchange` has the formats. It is a higher layer, so it is imported by name, on first use.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

_FORMATS: Final = "ketrag_fast.interchange"


def export_to(index: Any, format: str, target: str | os.PathLike[str], options: dict[str, Any]) -> Any:  # noqa: A002
    """Write a graph of an index and return the report of `export_graph`."""
    return import_module(f"{_FORMATS}.exporting").export_graph(index, format, target, **options)


def import_from(
    format: str,  # noqa: A002 - as in `import_index`
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    options: dict[str, Any],
) -> None:
    """Build the index at `path` from files of another program; see `import_index`."""
    import_module(f"{_FORMATS}.importing").import_index(format, folder, path, **options)
