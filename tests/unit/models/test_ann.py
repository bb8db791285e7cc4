"""hnswlib against the exact scan, with its traps in the way."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.base.config.shared import LARGE
from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing, IndexDamaged, IndexIncompatible, InputError
from ketrag_fast.kernels.vectors import top_k
from ketrag_fast.models import ann
from ketrag_fast.models.ann import HnswGraph, HnswMeta, StoredGraph, choose
from tests.process import python
from tests.support.parts import part


def some(count: int, dimension: int = 24, seed: int = 1) -> np.ndarray:
    rows = np.random.Generator(np.random.PCG64(seed)).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for installed in (True, False):
        monkeypatch.setattr(ann, "is_hnswlib_installed", lambda installed=installed: installed)
        assert choose(LARGE, "auto") == ("hnsw" if installed else "exact")
        assert choose(LARGE - 1, "auto") == choose(10**7, "exact") == "exact"
        assert choose(1, "hnsw") == "hnsw"


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(BackendMissing) as caught:
        HnswGraph.build(some(5), tmp_path / "h.bin", 42)
    assert install_command("ann") in str(caught.value.hint)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, hnswlib: Any) -> tuple[Path, np.ndarray, HnswGraph]:
    vectors = some(3000)
    path = tmp_path_factory.mktemp("ann") / "units.hnsw"
    return path, vectors, HnswGraph.build(vectors, path, 42)


@pytest.mark.usefixtures("hnswlib")
class TestHnsw:
    def test_recall_is_measured_stored_and_the_same_after_loading(self, built: Any) -> None:
        path, vectors, graph = built
        queries = some(200, seed=2)
        exact, _ = top_k(vectors, queries, 10)
        meta = HnswMeta.from_json(json.loads(json.dumps(graph.meta.to_json())))
        found, again = (g.candidates(queries, 20) for g in (graph, HnswGraph.open(path, meta)))
        assert np.array_equal(found, again) and (np.diff(found.astype(int), axis=1) > 0).all()
        hits = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(exact, found, strict=True)])
        assert hits >= 0.97 and graph.meta.recall >= 0.99

    def test_the_width_is_set_after_loading(self, built: Any) -> None:
        path, _, graph = built
        assert graph.meta.search_width >= 256
        assert HnswGraph.open(path, graph.meta)._index.ef == graph.meta.search_width

    def test_more_than_the_graph_can_tell_has_no_candidates(self, built: Any) -> None:
        _, vectors, graph = built
        assert graph.candidates(vectors[:2], graph.meta.search_width + 1) is None
        assert graph.candidates(vectors[:2], 0) is None
        assert graph.candidates(vectors[:2], 256).shape == (2, 256)

    def test_equal_vectors_give_equal_files(self, built: Any, tmp_path: Path) -> None:
        path, vectors, graph = built
        again = HnswGraph.build(vectors, tmp_path / "again.hnsw", 42)
        assert again.meta == graph.meta
        assert (tmp_path / "again.hnsw").read_bytes() == path.read_bytes()
        assert [p.name for p in tmp_path.iterdir()] == ["again.hnsw"]

    @pytest.mark.parametrize("where", [0, 40, -1])
    def test_an_altered_file_never_reaches_the_library(
        self, built: Any, where: int, tmp_path: Path, hnswlib: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, _, graph = built
        data = bytearray(path.read_bytes())
        data[where] ^= 1
        (tmp_path / "bad").write_bytes(data)

        def reached(*_: Any, **__: Any) -> None:
            raise AssertionError("hnswlib saw the file")

        monkeypatch.setattr(hnswlib, "Index", reached)
        with pytest.raises(IndexDamaged, match="size or checksum"):
            HnswGraph.open(tmp_path / "bad", graph.meta)
        (tmp_path / "bad").write_bytes(data[:-9])
        with pytest.raises(IndexDamaged):
            HnswGraph.open(tmp_path / "bad", graph.meta)
        with pytest.raises(IndexDamaged, match="cannot read"):
            HnswGraph.open(tmp_path / "none", graph.meta)

    def test_records_that_do_not_fit(self, built: Any) -> None:
        _, _, graph = built
        with pytest.raises(IndexDamaged, match="was built for"):
            StoredGraph(lambda: pytest.fail("it was opened"), graph.meta, (2999, 24))
        with pytest.raises(IndexIncompatible, match="format 9"):
            HnswMeta.from_json({**graph.meta.to_json(), "format": 9})
        with pytest.raises(IndexDamaged):
            HnswMeta.from_json({"format": 1})
        with pytest.raises(IndexDamaged, match="invalid values"):
            HnswMeta.from_json(replace(graph.meta, search_width=0).to_json())

    @pytest.mark.parametrize("count", [0, 1, 2, 11])
    def test_few_vectors(self, count: int, tmp_path: Path) -> None:
        graph = HnswGraph.build(some(count), tmp_path / "few", 42)
        found = graph.candidates(some(3, seed=4), count)
        assert found.tolist() == [list(range(count))] * 3 if count else found is None

    def test_many_equal_and_zero_vectors(self, tmp_path: Path) -> None:
        vectors = np.repeat(some(3), 200, axis=0)
        vectors[5] = 0
        found = HnswGraph.build(vectors, tmp_path / "equal", 42).candidates(some(4, seed=5), 10)
        assert found is None or all(len(np.unique(row)) == 10 for row in found)

    def test_bad_vectors(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="NaN"):
            HnswGraph.build(np.full((2, 3), np.nan, np.float32), tmp_path / "x", 42)
        with pytest.raises(InputError, match="float64"):
            HnswGraph.build(np.zeros((2, 3)), tmp_path / "x", 42)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_graph_that_the_disk_has_no_room_for_is_an_error(tmp_path: Path) -> None:
    """hnswlib does not look whether it could write: what it left would be published under its checksum."""
    part("hnswlib", "ann")
    done = python(
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from ketrag_fast.models.ann import HnswGraph\n"
        "rows = np.random.default_rng(1).standard_normal((2000, 24)).astype(np.float32)\n"
        "rows /= np.linalg.norm(rows, axis=1, keepdims=True)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, -1))\n"
        "try:\n    HnswGraph.build(rows, Path('graph.hnsw'), 42)\n"
        "except Exception as error:\n    print(type(error).__name__, error.hint)\n",
        cwd=tmp_path,
    )
    assert done.out.startswith("StorageFull free some space"), done.err
    assert not list(tmp_path.iterdir())
