"""Graphs of hnswlib over the vectors of an index: built by a stage, opened by the first query.

A graph only gives candidates, which the core scores exactly; without candidates it scans all vectors. The
pitfalls of hnswlib are avoided here:

* The search width falls back to 10 after loading: it is stored with the graph and set after every load.
* A crafted or truncated file overflows the heap on loading: the checksum is verified first.
* A k larger than the number of reachable vectors raises: then there are no candidates.
* Searching while inserting is unsafe: a graph is complete before it can be searched.
* Results are approximate: recall is measured at build time, stored and reported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config.shared import LARGE
from ketrag_fast.base.installed import installed_version
from ketrag_fast.errors import (
    BackendMissing,
    Cancelled,
    IndexDamaged,
    IndexIncompatible,
    InputError,
    StorageFull,
)
from ketrag_fast.kernels.vectors import top_k
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.durable import replace_path

Choice = Literal["auto", "exact", "hnsw"]
Floats = NDArray[np.float32]
Report = Callable[[int, int], bool | None]

GRAPH: Final = "graph"
RECORD: Final = "record"
FORMAT: Final = 1
LINKS: Final = 16
BUILD_WIDTH: Final = 200
"""Half the time of 24 and 300, equal recall on 100,000 vectors of 384 dimensions (benches/kernels.py)."""
_WIDTHS: Final = (256, 384, 512, 768, 1024)
"""Search widths. A budget of 4,000 tokens needs about 100 passages; twice as many are fetched."""
_RECALL: Final = 0.99
_RECALL_AT: Final = 10
_SAMPLE: Final = 256
_BATCH: Final = 2_000
_TURN: Final = 1.0
"""Noise added to sample queries (a rotation by about 45 degrees), because real queries are not stored."""


def choose(count: int, choice: Choice) -> Literal["exact", "hnsw"]:
    """Return the search method; `auto` is the exact scan below `LARGE` vectors or without hnswlib."""
    if choice != "auto":
        return choice
    return "hnsw" if count >= LARGE and is_hnswlib_installed() else "exact"


def is_hnswlib_installed() -> bool:
    """Return whether hnswlib is installed, without importing it."""
    return importlib.util.find_spec("hnswlib") is not None


@dataclass(frozen=True, slots=True)
class HnswMeta:
    """The metadata stored with a graph, needed to open it."""

    format: int
    count: int
    dimension: int
    links: int
    build_width: int
    search_width: int
    recall: float
    recall_at: int
    sample: int
    seed: int
    bytes: int
    checksum: str
    engine: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields for the manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> HnswMeta:
        """Return the metadata from the output of `to_json`."""
        try:
            meta = cls(**data)
        except TypeError as error:
            raise IndexDamaged(f"the record of the hnswlib index is damaged: {error}") from error
        if meta.format != FORMAT:
            raise IndexIncompatible(f"the hnswlib index has format {meta.format}, expected {FORMAT}")
        if not (0 < meta.search_width <= 1_000_000 and meta.count >= 0 and meta.dimension > 0):
            raise IndexDamaged("the record of the hnswlib index has invalid values")
        return meta


class HnswGraph:
    """An open graph."""

    def __init__(self, index: Any, meta: HnswMeta) -> None:
        self._index = index
        self.meta = meta

    @classmethod
    def build(cls, vectors: Floats, path: Path, seed: int, report: Report | None = None) -> HnswGraph:
        """Build a graph, choose its search width, write it to `path` atomically and open it.

        The same vectors, processor and hnswlib version give the same file. The search width is the smallest
        step at which recall@10 on a rotated sample of the vectors reaches 0.99. `report(done, total)` counts
        vectors; if it returns False, Cancelled is raised.
        """
        if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.shape[1]:
            raise InputError(f"vectors must be float32 [n, d], got {vectors.dtype} {vectors.shape}")
        library: Any = import_quietly("hnswlib", "ann")
        seed %= 2**31
        count, dimension = (int(size) for size in vectors.shape)
        index = library.Index(space="ip", dim=dimension)
        index.init_index(max(count, 1), M=LINKS, ef_construction=BUILD_WIDTH, random_seed=seed)
        for start in range(0, count, _BATCH):
            some = vectors[start : start + _BATCH]
            if not np.isfinite(some).all():
                raise InputError(f"vectors contain NaN or infinity near row {start}")
            # With more threads the file would not be deterministic.
            index.add_items(some, np.arange(start, start + len(some)), num_threads=1)
            if report is not None and report(start + len(some), count) is False:
                raise Cancelled("building the hnswlib graph was stopped")
        aside = path.with_name(path.name + ".part")
        index.save_index(str(aside))
        # hnswlib does not check whether it could write.
        if aside.stat().st_size != index.index_file_size():
            aside.unlink()
            raise StorageFull(
                f"cannot write {aside}: no space left, or a disk error",
                hint="free some space and run the same command again: it resumes",
            )
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        width, recall, sample = _tune(index, vectors, seed)
        meta = HnswMeta(
            format=FORMAT,
            count=count,
            dimension=dimension,
            links=LINKS,
            build_width=BUILD_WIDTH,
            search_width=width,
            recall=recall,
            recall_at=_RECALL_AT,
            sample=sample,
            seed=seed,
            bytes=aside.stat().st_size,
            checksum=_checksum(aside),
            engine=f"hnswlib {installed_version('hnswlib')}",
        )
        replace_path(aside, path)
        return cls.open(path, meta)

    @classmethod
    def open(cls, path: Path, meta: HnswMeta) -> HnswGraph:
        """Open a file after verifying its size and checksum."""
        library: Any = import_quietly("hnswlib", "ann")
        try:
            is_intact = path.stat().st_size == meta.bytes and _checksum(path) == meta.checksum
        except OSError as error:
            raise IndexDamaged(f"cannot read {path}: {error.strerror}") from error
        if not is_intact:
            raise IndexDamaged(f"{path} is damaged: size or checksum differ", hint="build the index again")
        index = library.Index(space="ip", dim=meta.dimension)
        try:
            index.load_index(str(path), max_elements=max(meta.count, 1))
        except RuntimeError as error:
            raise IndexIncompatible(
                f"{path} cannot be read by hnswlib {installed_version('hnswlib')}: {error}",
                hint="build the index again",
            ) from error
        if index.get_current_count() != meta.count:
            raise IndexDamaged(f"{path} has {index.get_current_count()} vectors, expected {meta.count}")
        index.set_ef(meta.search_width)
        return cls(index, meta)

    def candidates(self, queries: Floats, count: int, threads: int = 0) -> NDArray[np.uint32] | None:
        """Return the ids of the probable nearest vectors, [queries, count], ascending in each row, unscored.

        None if `count` is above the stored search width or the number of vectors, or if a part of the graph
        cannot be reached.
        """
        if not 0 < count <= min(self.meta.count, self.meta.search_width):
            return None
        try:
            found, _ = self._index.knn_query(queries, k=count, num_threads=threads if threads > 0 else -1)
        except RuntimeError:
            return None
        return np.sort(found.astype(np.uint32), axis=1)


def _tune(index: Any, vectors: Floats, seed: int) -> tuple[int, float, int]:
    """Return (search width, its recall, number of sample queries)."""
    count = len(vectors)
    if not count:
        return _WIDTHS[0], 1.0, 0
    draw = np.random.Generator(np.random.PCG64(seed))
    chosen = np.asarray(vectors[np.sort(draw.choice(count, min(_SAMPLE, count), replace=False))])
    noise = draw.standard_normal(chosen.shape).astype(np.float32)
    lengths = np.linalg.norm(chosen, axis=1, keepdims=True)
    asked = chosen + _TURN * lengths * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    k = min(_RECALL_AT, count)
    exact, _ = top_k(vectors, asked, k)
    width, reached = _WIDTHS[-1], 0.0
    for width in _WIDTHS:
        index.set_ef(width)
        try:
            found, _ = index.knn_query(asked, k=k)
        except RuntimeError:
            continue
        hits = [len(np.intersect1d(a, b)) for a, b in zip(exact, found.astype(np.uint32), strict=True)]
        reached = float(np.sum(hits)) / (k * len(asked))
        if reached >= _RECALL:
            break
    return width, round(reached, 6), len(asked)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


# -- in an index -----------------------------------------------------------------------------------


def write(
    vectors: Floats, scratch: Path | None, seed: int, report: Report | None
) -> tuple[Path, NDArray[np.uint8]]:
    """Write the `GRAPH` of a stage to a new file in `scratch`; return it and its `RECORD`."""
    import tempfile  # imported here because few indexes have such a graph

    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".hnsw", delete=False) as file:
        path = Path(file.name)
    try:
        graph = HnswGraph.build(vectors, path, seed, report)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    record = json.dumps(graph.meta.to_json(), sort_keys=True).encode("ascii")
    return path, np.frombuffer(record, np.uint8)


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
    """The graph of a stage over vectors of the given `shape`, opened by the first query. Thread-safe."""

    def __init__(
        self, file: Callable[[], AbstractContextManager[Path]], record: HnswMeta, shape: tuple[int, int]
    ) -> None:
        if shape != (record.count, record.dimension):
            raise IndexDamaged(
                f"a graph was built for vectors of shape ({record.count}, {record.dimension}), got {shape}"
            )
        self._file = file
        self._record = record
        self._lock = threading.Lock()
        self._graph: HnswGraph | None = None
        self.missing: str | None = None
        """Why all vectors are scanned although a graph exists, or None."""

    def candidates(self, queries: Floats, count: int, threads: int = 0) -> NDArray[np.uint32] | None:
        """See `HnswGraph.candidates`; also None if hnswlib is not installed."""
        with self._lock:
            if self._graph is None and self.missing is None:
                try:
                    with self._file() as path:
                        self._graph = HnswGraph.open(path, self._record)
                except BackendMissing as error:
                    self.missing = f"{error}; all vectors were scanned ({error.hint})"
        return None if self._graph is None else self._graph.candidates(queries, count, threads)
