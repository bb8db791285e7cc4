"""The hnswlib graph over the vectors of an index: written by a stage, opened when it is first needed.

The graph only gives candidates, which are scored exactly; without candidates all vectors are scored.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendMissing, IndexDamaged
from ketrag_fast.models.ann.choose import Choice, choose, is_hnswlib_installed
from ketrag_fast.models.ann.hnsw import HnswIndex, HnswMeta, Report
from ketrag_fast.models.ann.protocol import Floats, Ids

GRAPH: Final = "graph"
RECORD: Final = "record"
LEAST_WIDTH: Final = 256
"""A budget of 4,000 tokens needs about 100 passages; twice as many are fetched."""
LINKS: Final = 16
BUILD_WIDTH: Final = 200
"""Half the time of 24 and 300, equal recall on 100,000 vectors of 384 dimensions (benches/kernels.py)."""


def write(
    vectors: Floats, choice: Choice, least: int, scratch: Path | None, seed: int, report: Report | None
) -> tuple[Path, NDArray[np.uint8]] | None:
    """Write the `GRAPH` of a stage to `scratch`; return it and its `RECORD`, or None for the exact scan."""
    if not len(vectors) or choose(len(vectors), choice, least, is_hnswlib_installed()) == "exact":
        return None
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".hnsw", delete=False) as file:
        path = Path(file.name)
    try:
        index = build(vectors, path, seed, report)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    record = json.dumps(index.meta.to_json(), sort_keys=True).encode("ascii")
    return path, np.frombuffer(record, np.uint8)


def build(vectors: Floats, path: Path, seed: int, report: Report | None) -> HnswIndex:
    """Build a graph with the parameters of an index."""
    return HnswIndex.build(
        vectors,
        path,
        links=LINKS,
        build_width=BUILD_WIDTH,
        least_width=LEAST_WIDTH,
        seed=seed % 2**31,
        report=report,
    )


def record_of(stage: Mapping[str, NDArray[Any]] | None) -> HnswMeta | None:
    """Return the metadata of the graph of a stage, or None if it has none."""
    if stage is None or RECORD not in stage:
        return None
    try:
        data = json.loads(stage[RECORD].tobytes())
    except ValueError as error:
        raise IndexDamaged(f"the record of the hnswlib index is damaged: {error}") from error
    if not isinstance(data, dict):
        raise IndexDamaged("the record of the hnswlib index is damaged")
    return HnswMeta.from_json(data)


class StoredGraph:
    """The graph of a stage, opened by the first query. Thread-safe."""

    def __init__(
        self,
        file: Callable[[], AbstractContextManager[Path]],
        record: HnswMeta,
        vectors: Callable[[], Floats],
    ) -> None:
        self._file = file
        self._record = record
        self._vectors = vectors
        self._lock = threading.Lock()
        self._index: HnswIndex | None = None
        self.missing: str | None = None
        """Why all vectors are scanned although a graph exists, or None."""

    def candidates(self, queries: Floats, count: int, threads: int = 0) -> Ids | None:
        """See `HnswIndex.candidates`; also None if hnswlib is not installed."""
        with self._lock:
            if self._index is None and self.missing is None:
                self._open()
            index = self._index
        return None if index is None else index.candidates(queries, count, threads)

    def _open(self) -> None:
        try:
            with self._file() as path:
                self._index = HnswIndex.open(path, self._record, self._vectors())
        except BackendMissing as error:
            self.missing = f"{error}; all vectors were scanned ({error.hint})"
