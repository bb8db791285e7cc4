"""An index that is opened on first use, once, whichever thread comes first."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ketrag_fast import Index, Settings


class LazyIndex:
    """The index at a path."""

    def __init__(self, path: str, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._settings = dict(settings)
        self._lock = threading.Lock()
        self._index: Index | None = None

    def index(self) -> Index:
        """Return the open index. Raises what `Index.open` raises."""
        if self._index is None:
            with self._lock:
                if self._index is None:
                    self._index = Index.open(self._path, settings=Settings(**self._settings))
        return self._index

    def close(self) -> None:
        """Close the index; the next use opens it again."""
        with self._lock:
            index, self._index = self._index, None
        if index is not None:
            index.close()
