"""`Index.export`, `Index.from_lightrag` and `Index.from_graphrag`: formats of other programs.

The formats are in `lab`, a higher layer, and are imported by name when they are first used.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings
    from ketrag_fast.base.progress import Callback

    PathText = str | os.PathLike[str]

_FORMATS: Final = "ketrag_fast.lab.interchange"


class Interchange:
    """The methods of `Index` that read and write formats of other programs."""

    if TYPE_CHECKING:

        @classmethod
        def open(cls, path: PathText, *, settings: Settings | None = None) -> Self:
            """Open a built index."""

    def export(self, format: str, target: PathText, **options: Any) -> Any:  # noqa: A002 - as in `export_graph`
        """Write a graph of the index as graphrag, graphml, gexf, neo4j, jsonl or html.

        Takes the options, returns the report and raises the errors of `export_graph`.

        Examples:
            >>> report = index.export("graphml", scratch / "walk.graphml", graph="walk")
            >>> report.nodes > 0
            True
        """
        return import_module(f"{_FORMATS}.exporting").export_graph(self, format, target, **options)

    @classmethod
    def from_lightrag(
        cls,
        folder: PathText,
        path: PathText,
        *,
        settings: Settings | None = None,
        replace: bool = False,
        progress: Callback | None = None,
    ) -> Self:
        """Build the index at `path` from a working directory of LightRAG, without an LLM, and open it.

        `import_index` does the same and returns a report of what could not be taken. Raises as it does.
        """
        return cls._imported("lightrag", folder, path, settings, replace, progress)

    @classmethod
    def from_graphrag(
        cls,
        folder: PathText,
        path: PathText,
        *,
        settings: Settings | None = None,
        replace: bool = False,
        progress: Callback | None = None,
    ) -> Self:
        """Build the index at `path` from the output folder of GraphRAG, without an LLM, and open it.

        `import_index` does the same and returns a report of what could not be taken. Raises as it does.

        Examples:
            >>> report = index.export("graphrag", scratch / "tables", graph="skeleton")
            >>> with Index.from_graphrag(scratch / "tables", scratch / "copy") as copy:
            ...     copy.inspect.document_count
            3
        """
        return cls._imported("graphrag", folder, path, settings, replace, progress)

    @classmethod
    def _imported(
        cls,
        format: str,  # noqa: A002 - as in `import_index`
        folder: PathText,
        path: PathText,
        settings: Settings | None,
        replace: bool,
        progress: Callback | None,
    ) -> Self:
        importing = import_module(f"{_FORMATS}.importing")
        importing.import_index(format, folder, path, settings=settings, replace=replace, progress=progress)
        return cls.open(Path(path), settings=settings)
