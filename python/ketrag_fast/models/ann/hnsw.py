"""A wrapper of hnswlib that avoids its pitfalls.

* The search width falls back to 10 after loading: it is stored with the index and set after every load.
* A crafted or truncated file overflows the heap on loading: the checksum is verified first.
* A k larger than the number of reachable vectors raises: k is clamped, and the exact scan answers if the
  graph has unreachable parts.
* A filter makes a query up to 100 times slower: filtered queries use the exact scan.
* Searching while inserting is unsafe: an index is complete before it can be searched, and has no insert.
* Results are approximate: recall is measured at build time, stored and reported.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import (
    BackendMissing,
    Cancelled,
    ConfigError,
    IndexDamaged,
    IndexIncompatible,
    StorageFull,
)
from ketrag_fast.models.ann.protocol import (
    NOBODY,
    Floats,
    Ids,
    Mask,
    check_k,
    check_mask,
    check_queries,
    check_vectors,
    exact_scores,
    sort_by_score,
)
from ketrag_fast.storage.durable import replace_path

_BLOCK_FLOATS: Final = 16_000_000
_MARGIN: Final = 32
_CLOSE: Final = 1e-4


class ExactScan:
    """Exact nearest-neighbour search. Vectors are not copied; a memory map stays mapped."""

    kind = "exact"
    recall = 1.0

    def __init__(self, vectors: Floats) -> None:
        self._vectors = check_vectors(vectors)
        self.count, self.dimension = (int(size) for size in vectors.shape)

    def search(
        self, queries: Floats, k: int, allowed: Mask | None = None, threads: int = 0
    ) -> tuple[Ids, Floats]:
        """See `Nearest.search`."""
        asked = check_queries(queries, self.dimension)
        mask = check_mask(allowed, self.count)
        width = check_k(k, self.count)
        ids = np.full((len(asked), width), NOBODY, np.uint32)
        scores = np.full((len(asked), width), -np.inf, np.float32)
        if not width:
            return ids, scores
        rows = None if mask is None else np.flatnonzero(mask)
        pool = self._vectors if rows is None else self._vectors[rows]
        if not len(pool):
            return ids, scores
        block = max(1, _BLOCK_FLOATS // len(pool))
        for start in range(0, len(asked), block):
            rough = asked[start : start + block] @ pool.T
            for place, row in enumerate(rough, start):
                chosen = _candidates(row, width)
                real = chosen if rows is None else rows[chosen]
                found, exact = sort_by_score(real, exact_scores(self._vectors, real, asked[place]), width)
                ids[place, : len(found)] = found
                scores[place, : len(found)] = exact
        return ids, scores

    def facts(self) -> dict[str, Any]:
        """Return the facts for `stats`."""
        return {"kind": self.kind, "count": self.count, "dimension": self.dimension, "recall": self.recall}


def _candidates(row: Floats, k: int) -> Any:
    """Return all rows that may be among the exact top k: the k + 32 best and those close to the k-th."""
    if k + _MARGIN >= len(row):
        return np.arange(len(row))
    top = np.argpartition(row, -(k + _MARGIN))[-(k + _MARGIN) :]
    kth = np.partition(row[top], -k)[-k]
    near = np.flatnonzero(row >= kth - _CLOSE * max(1.0, abs(float(kth))))
    return np.union1d(top, near)


EXTRA: Final = "ann"
Report = Callable[[int, int], bool | None]
FORMAT: Final = 1
RECALL_AT: Final = 10
_WIDTHS: Final = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_SAMPLE: Final = 256
_BATCH: Final = 2_000
_TURN: Final = 1.0
"""Noise added to sample queries (a rotation by about 45 degrees), because real queries are not stored."""


@dataclass(frozen=True, slots=True)
class HnswMeta:
    """The metadata stored with an index file, needed to open it."""

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


class HnswIndex:
    """An open index over `vectors`, which are used for exact scores and filtered queries."""

    kind = "hnsw"

    def __init__(self, index: Any, meta: HnswMeta, vectors: Floats) -> None:
        self._index = index
        self.meta = meta
        self._vectors = vectors
        self._exact = ExactScan(vectors)
        self.count, self.dimension, self.recall = meta.count, meta.dimension, meta.recall

    @classmethod
    def build(
        cls,
        vectors: Floats,
        path: Path,
        *,
        links: int = 16,
        build_width: int = 200,
        recall: float = 0.99,
        least_width: int = _WIDTHS[0],
        seed: int = 42,
        threads: int = 1,
        report: Report | None = None,
    ) -> HnswIndex:
        """Build an index, tune its search width, write it to `path` atomically and open it.

        With one thread, the same vectors, processor and hnswlib version give the same file; more threads are
        faster but not deterministic. The search width is the smallest step of at least `least_width` at which
        recall@10 on a rotated sample of the vectors reaches `recall`. `report(done, total)` counts vectors;
        if it returns False, Cancelled is raised.
        """
        stored = check_vectors(vectors)
        if not (2 <= links <= 256 and build_width >= 1 and 0 < recall <= 1):
            raise ConfigError(
                "hnswlib: links must be 2 to 256, build_width at least 1 and recall in (0, 1], "
                f"got {links}, {build_width} and {recall}"
            )
        library = _library()
        count, dimension = (int(size) for size in stored.shape)
        index = library.Index(space="ip", dim=dimension)
        index.init_index(max(count, 1), M=links, ef_construction=build_width, random_seed=seed)
        if count:
            cores = threads if threads > 0 else os.cpu_count() or 1
            for start in range(0, count, _BATCH):  # in the order of ids, independent of the batch size
                rows = np.arange(start, min(start + _BATCH, count))
                index.add_items(stored[rows[0] : rows[-1] + 1], rows, num_threads=cores)
                if report is not None and report(int(rows[-1]) + 1, count) is False:
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
        width, reached, sample = _tune(index, stored, recall, least_width, seed)
        meta = HnswMeta(
            FORMAT,
            count,
            dimension,
            links,
            build_width,
            width,
            reached,
            RECALL_AT,
            sample,
            seed,
            aside.stat().st_size,
            _checksum(aside),
            f"hnswlib {_version()}",
        )
        replace_path(aside, path)
        return cls.open(path, meta, stored)

    @classmethod
    def open(cls, path: Path, meta: HnswMeta, vectors: Floats) -> HnswIndex:
        """Open a file after verifying its size and checksum."""
        stored = check_vectors(vectors)
        if stored.shape != (meta.count, meta.dimension):
            raise IndexDamaged(
                f"{path} was built for vectors of shape ({meta.count}, {meta.dimension}), got {stored.shape}"
            )
        library = _library()
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
                f"{path} cannot be read by hnswlib {_version()}: {error}", hint="build the index again"
            ) from error
        if index.get_current_count() != meta.count:
            raise IndexDamaged(f"{path} has {index.get_current_count()} vectors, expected {meta.count}")
        index.set_ef(meta.search_width)
        return cls(index, meta, stored)

    def candidates(self, queries: Floats, count: int, threads: int = 0) -> Ids | None:
        """Return the ids of the probable nearest vectors, [queries, count], ascending in each row, unscored.

        None if `count` is above the stored search width or the number of vectors, or if a part of the graph
        cannot be reached.
        """
        rows = check_queries(queries, self.dimension)
        if not 0 < count <= min(self.count, self.meta.search_width):
            return None
        try:
            found, _ = self._index.knn_query(rows, k=count, num_threads=threads if threads > 0 else -1)
        except RuntimeError:
            return None
        return np.sort(found.astype(np.uint32), axis=1)

    def search(
        self, queries: Floats, k: int, allowed: Mask | None = None, threads: int = 0
    ) -> tuple[Ids, Floats]:
        """See `Nearest.search`. The exact scan answers for a `k` above the stored search width."""
        rows = check_queries(queries, self.dimension)
        mask = check_mask(allowed, self.count)
        width = check_k(k, self.count)
        if mask is not None or not width or not len(rows) or width > self.meta.search_width:
            return self._exact.search(rows, width, mask, threads)
        wanted = min(self.count, self.meta.search_width)
        try:
            rough, _ = self._index.knn_query(rows, k=wanted, num_threads=threads if threads > 0 else -1)
        except RuntimeError:  # the graph has unreachable vectors, so fewer than `wanted` were found
            return self._exact.search(rows, width, None, threads)
        ids = np.empty((len(rows), width), np.uint32)
        scores = np.empty((len(rows), width), np.float32)
        for place, row in enumerate(rough.astype(np.int64)):
            ids[place], scores[place] = sort_by_score(
                row, exact_scores(self._vectors, row, rows[place]), width
            )
        return ids, scores

    def facts(self) -> dict[str, Any]:
        """Return the facts for `stats`."""
        return {"kind": self.kind, **self.meta.to_json()}


def _tune(index: Any, vectors: Floats, target: float, least: int, seed: int) -> tuple[int, float, int]:
    """Return (search width, its recall, number of sample queries)."""
    count = len(vectors)
    widths = [least, *(width for width in _WIDTHS if width > least)]
    if not count:
        return least, 1.0, 0
    draw = np.random.Generator(np.random.PCG64(seed))
    rows = np.sort(draw.choice(count, min(_SAMPLE, count), replace=False))
    chosen = np.asarray(vectors[rows])
    noise = draw.standard_normal(chosen.shape).astype(np.float32)
    lengths = np.linalg.norm(chosen, axis=1, keepdims=True)
    asked = chosen + _TURN * lengths * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    k = min(RECALL_AT, count)
    exact, _ = ExactScan(vectors).search(asked, k)
    width, reached = widths[-1], 0.0
    for width in widths:
        index.set_ef(max(width, k))
        try:
            found, _ = index.knn_query(asked, k=k)
        except RuntimeError:
            continue
        hits = [len(np.intersect1d(a, b)) for a, b in zip(exact, found.astype(np.uint32), strict=True)]
        reached = float(np.sum(hits)) / (k * len(asked))
        if reached >= target:
            break
    return width, round(reached, 6), len(asked)


def _library() -> Any:
    try:
        hnswlib: Any = importlib.import_module("hnswlib")
    except ImportError as error:
        raise BackendMissing(
            "hnswlib is not installed", hint=f"pip install 'ketrag-fast[{EXTRA}]'"
        ) from error
    return hnswlib


def _version() -> str:
    from importlib.metadata import version

    return version("hnswlib")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
