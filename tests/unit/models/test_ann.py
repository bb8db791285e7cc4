"""The exact scan against sorting, and hnswlib against the exact scan, with its traps in the way."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.errors import BackendMissing, ConfigError, IndexDamaged, IndexIncompatible, InputError
from ketrag_fast.models.ann.choose import choose
from ketrag_fast.models.ann.hnsw import ExactScan, HnswIndex, HnswMeta
from ketrag_fast.models.ann.protocol import NOBODY
from tests.process import python
from tests.support.parts import part


def some(count: int, dimension: int = 24, seed: int = 1) -> np.ndarray:
    rows = np.random.Generator(np.random.PCG64(seed)).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 60), st.integers(0, 70), st.integers(0, 2**32), st.booleans())
def test_the_scan_is_a_sort(count: int, k: int, seed: int, filtered: bool) -> None:
    draw = np.random.Generator(np.random.PCG64(seed))
    vectors = draw.integers(-1, 2, (count, 3)).astype(np.float32)  # many equal scores
    queries = draw.integers(-1, 2, (4, 3)).astype(np.float32)
    mask = draw.random(count) < 0.3 if filtered else None
    ids, scores = ExactScan(vectors).search(queries, k, mask)
    assert ids.shape == scores.shape == (4, min(k, count))
    for row, query in enumerate(queries):
        pool = [i for i in range(count) if mask is None or mask[i]]
        wanted = sorted(pool, key=lambda i: (-float(vectors[i] @ query), i))[:k]
        wanted += [int(NOBODY)] * (min(k, count) - len(wanted))
        assert ids[row].tolist() == wanted
        assert np.isneginf(scores[row][ids[row] == NOBODY]).all()


def test_bad_input() -> None:
    scan = ExactScan(some(5))
    for queries in (
        np.zeros((2, 23), np.float32),
        np.zeros(24, np.float32),
        np.full((1, 24), np.nan, np.float32),
    ):
        with pytest.raises(InputError):
            scan.search(queries, 3)
    with pytest.raises(InputError, match="allowed"):
        scan.search(some(1), 3, np.zeros(4, bool))
    with pytest.raises(InputError, match="k must"):
        scan.search(some(1), -1)
    with pytest.raises(InputError, match="NaN"):
        ExactScan(np.full((2, 3), np.nan, np.float32))
    with pytest.raises(InputError, match="float64"):
        ExactScan(np.zeros((2, 3)))  # type: ignore[arg-type]


def test_choice() -> None:
    assert choose(100, "auto", 100, True) == "hnsw"
    assert choose(99, "auto", 100, True) == choose(10**7, "auto", 100, False) == "exact"
    assert choose(1, "hnsw", 100, False) == "hnsw"
    assert choose(10**7, "exact", 100, True) == "exact"


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(BackendMissing) as caught:
        HnswIndex.build(some(5), tmp_path / "h.bin")
    assert "ketrag-fast[ann]" in str(caught.value.hint)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, hnswlib: Any) -> tuple[Path, np.ndarray, HnswIndex]:
    vectors = some(3000)
    path = tmp_path_factory.mktemp("ann") / "units.hnsw"
    return path, vectors, HnswIndex.build(vectors, path)


@pytest.mark.usefixtures("hnswlib")
class TestHnsw:
    def test_recall_is_measured_stored_and_the_same_after_loading(self, built: Any) -> None:
        path, vectors, index = built
        queries = some(200, seed=2)
        exact, scores = ExactScan(vectors).search(queries, 10)
        meta = HnswMeta.from_json(json.loads(json.dumps(index.meta.to_json())))
        found, again = (i.search(queries, 10) for i in (index, HnswIndex.open(path, meta, vectors)))
        assert np.array_equal(found[0], again[0]) and np.array_equal(found[1], again[1])
        hits = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(exact, found[0], strict=True)])
        assert hits >= 0.97 and index.meta.recall >= 0.99 and index.facts()["recall"] == index.meta.recall
        same = exact == found[0]
        assert np.array_equal(scores[same], found[1][same])

    def test_the_width_is_set_after_loading(self, built: Any) -> None:
        path, vectors, index = built
        assert index.meta.search_width > 10
        assert HnswIndex.open(path, index.meta, vectors)._index.ef == index.meta.search_width

    def test_asking_for_more_than_there_is(self, built: Any) -> None:
        _, vectors, index = built
        ids, _ = index.search(vectors[:2], 10_000)
        assert ids.shape == (2, 3000) and (np.sort(ids, axis=1) == np.arange(3000)).all()
        assert index.search(vectors[:2], 0)[0].shape == (2, 0)
        assert index.search(vectors[:0], 5)[0].shape == (0, 5)

    def test_filters_are_exact(self, built: Any) -> None:
        _, vectors, index = built
        mask = np.arange(3000) % 100 == 7
        queries = some(20, seed=3)
        ids, scores = index.search(queries, 10, mask)
        wanted = ExactScan(vectors).search(queries, 10, mask)
        assert np.array_equal(ids, wanted[0]) and np.array_equal(scores, wanted[1])

    def test_equal_vectors_give_equal_files(self, built: Any, tmp_path: Path) -> None:
        path, vectors, index = built
        again = HnswIndex.build(vectors, tmp_path / "again.hnsw")
        assert again.meta == index.meta
        assert (tmp_path / "again.hnsw").read_bytes() == path.read_bytes()
        assert [p.name for p in tmp_path.iterdir()] == ["again.hnsw"]

    @pytest.mark.parametrize("where", [0, 40, -1])
    def test_an_altered_file_never_reaches_the_library(
        self, built: Any, where: int, tmp_path: Path, hnswlib: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, vectors, index = built
        data = bytearray(path.read_bytes())
        data[where] ^= 1
        (tmp_path / "bad").write_bytes(data)

        def reached(*_: Any, **__: Any) -> None:
            raise AssertionError("hnswlib saw the file")

        monkeypatch.setattr(hnswlib, "Index", reached)
        with pytest.raises(IndexDamaged, match="size or checksum"):
            HnswIndex.open(tmp_path / "bad", index.meta, vectors)
        (tmp_path / "bad").write_bytes(data[:-9])
        with pytest.raises(IndexDamaged):
            HnswIndex.open(tmp_path / "bad", index.meta, vectors)
        with pytest.raises(IndexDamaged, match="cannot read"):
            HnswIndex.open(tmp_path / "none", index.meta, vectors)

    def test_records_that_do_not_fit(self, built: Any) -> None:
        path, vectors, index = built
        with pytest.raises(IndexDamaged, match="was built for"):
            HnswIndex.open(path, index.meta, vectors[:-1])
        with pytest.raises(IndexIncompatible, match="format 9"):
            HnswMeta.from_json({**index.meta.to_json(), "format": 9})
        with pytest.raises(IndexDamaged):
            HnswMeta.from_json({"format": 1})
        with pytest.raises(IndexDamaged, match="invalid values"):
            HnswMeta.from_json(replace(index.meta, search_width=0).to_json())

    @pytest.mark.parametrize("count", [0, 1, 2, 11])
    def test_few_vectors(self, count: int, tmp_path: Path) -> None:
        vectors = some(count)
        index = HnswIndex.build(vectors, tmp_path / "few")
        ids, scores = index.search(some(3, seed=4), 5)
        wanted = ExactScan(vectors).search(some(3, seed=4), 5)
        assert np.array_equal(ids, wanted[0]) and np.array_equal(scores, wanted[1])

    def test_many_equal_and_zero_vectors(self, tmp_path: Path) -> None:
        vectors = np.repeat(some(3), 200, axis=0)
        vectors[5] = 0
        index = HnswIndex.build(vectors, tmp_path / "equal")
        ids, scores = index.search(some(4, seed=5), 10)
        assert len(np.unique(ids[0])) == 10 and np.isfinite(scores).all()

    def test_bad_settings(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError):
            HnswIndex.build(some(5), tmp_path / "x", links=1)
        with pytest.raises(ConfigError):
            HnswIndex.build(some(5), tmp_path / "x", recall=1.5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_graph_that_the_disk_has_no_room_for_is_an_error(tmp_path: Path) -> None:
    """hnswlib does not look whether it could write: what it left would be published under its checksum."""
    part("hnswlib", "ann")
    done = python(
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from ketrag_fast.models.ann.hnsw import HnswIndex\n"
        "rows = np.random.default_rng(1).standard_normal((2000, 24)).astype(np.float32)\n"
        "rows /= np.linalg.norm(rows, axis=1, keepdims=True)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, -1))\n"
        "try:\n    HnswIndex.build(rows, Path('graph.hnsw'))\n"
        "except Exception as error:\n    print(type(error).__name__, error.hint)\n",
        cwd=tmp_path,
    )
    assert done.out.startswith("StorageFull free some space"), done.err
    assert not list(tmp_path.iterdir())
