"""What is verified when: all on opening, each block when it is first read, or nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import _core
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.arrays import (
    BLOCK,
    BLOCKS,
    HEAD,
    Arrays,
    RawFile,
    hash_ranges,
    open_hashes,
    write_arrays,
)
from ketrag_fast.storage.checksum import file_digest
from ketrag_fast.storage.generation import Generation, open_current, prune, publish
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import FileRecord, StageRecord
from tests.process import python
from tests.support.faults import flip

LARGE = np.arange(70_000, dtype=np.float32)  # four blocks and a part of a fifth, not packed
SMALL = np.arange(5, dtype=np.float64)
ROOT = Path(__file__).parents[3]


def release(layout: Layout, value: int = 0) -> None:
    """Publishes a stage with a large, a small and an empty array, and a file that is none."""
    folder = layout.work / f"things-{value}"
    folder.mkdir(parents=True)
    raw = folder / "raw.tmp"
    raw.write_bytes(bytes([value]) * 100_000)
    arrays = {"large": LARGE + value, "small": SMALL, "empty": np.zeros((0, 3), np.float32)}
    files = write_arrays(folder, {**arrays, "graph": RawFile(raw)})
    record = StageRecord("things", 1, f"fingerprint-{value}", 0.5, files)
    publish(layout, [(folder, record)], settings={}, documents={"count": 1}, version="0.1.0")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "index")
    layout.create()
    release(layout)
    return layout


def hashes_of(generation: Generation) -> Path:
    return generation.folder / "things" / BLOCKS


def test_the_hashes_of_the_blocks_merge_to_the_digest_of_the_manifest(layout: Layout) -> None:
    opened = open_current(layout)
    files = opened.manifest.stages["things"].files
    data = hashes_of(opened).read_bytes()
    assert data.startswith(HEAD)
    places = hash_ranges(files)
    assert set(places) == {"graph", "large"}
    assert len(data) == max(end for _, end in places.values())
    for name, (start, end) in places.items():
        file = files[name]
        assert _core.merge_hashes(data[start:end], file.bytes) == file.digest
        assert _core.merge_hashes(data[start:end], file.bytes - 70_000) is None
        assert _core.merge_hashes(bytes(end - start), file.bytes) != file.digest


def test_the_core_hashes_blocks_of_the_size_that_the_file_of_hashes_names(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for size, count in ((BLOCK, 0), (BLOCK + 1, 2), (3 * BLOCK, 3)):
        path.write_bytes(bytes(size))
        assert len(_core.hash_file(path)[1]) == 32 * count


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 16_385, 32_768, 3 * 16_384 + 1, 1 << 20, 1_200_000])
def test_hashes_of_files_of_all_sizes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(np.random.default_rng(size).bytes(size))
    digest, hashes = _core.hash_file(path)
    assert file_digest(path) == digest
    assert len(hashes) == (32 * -(-size // 16_384) if size > 16_384 else 0)
    if hashes:
        assert _core.merge_hashes(hashes, size) == digest
    _core.MappedFile(path, size, digest).verify(1)
    with pytest.raises(IndexDamaged, match="were written"):
        _core.MappedFile(path, size + 1, digest)
    if size:
        flip(path, size // 2)
        with pytest.raises(IndexDamaged, match="altered") as caught:
            _core.MappedFile(path, size, digest).verify()
        assert caught.value.hint


@pytest.mark.parametrize("hashed", [True, False])
def test_damage_is_found_on_opening_or_when_the_array_is_read(layout: Layout, hashed: bool) -> None:
    generation = open_current(layout)
    if not hashed:  # the file of hashes is lost
        hashes_of(generation).unlink()
    flip(generation.folder / "things" / "large.npy", 200_000)
    flip(generation.folder / "things" / "graph.bin", 9)
    with pytest.raises(IndexDamaged, match=r"graph\.bin.*checksum"):
        open_current(layout, "full")
    opened = open_current(layout, "blocks").stages["things"]
    np.testing.assert_array_equal(opened["small"], SMALL)
    for _ in range(2):
        with pytest.raises(IndexDamaged, match=r"large\.npy.*checksum") as caught:
            opened["large"]
        assert caught.value.hint
    assert open_current(layout, "sizes").stages["things"]["large"].shape == LARGE.shape


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_file_of_hashes_that_is_damaged_harms_nobody(layout: Layout, kept: int) -> None:
    generation = open_current(layout)
    path = hashes_of(generation)
    data = path.read_bytes()
    for spoilt in (data[:kept], data[:kept] + bytes(len(data[kept:])), b"x" * len(data)):
        path.write_bytes(spoilt)
        np.testing.assert_array_equal(open_current(layout).stages["things"]["large"], LARGE)
        open_current(layout, "full")
    release(layout, 1)
    stage, record = generation.folder / "things", generation.manifest.stages["things"]
    publish(layout, [(stage, record)], settings={}, documents={"count": 1}, version="0.1.0")
    assert hashes_of(open_current(layout)).read_bytes() == data  # published again, made anew


def removed(layout: Layout, value: int = 0) -> Arrays:
    """The stage of a generation that a builder has removed since it was opened; nothing of it was read."""
    things = open_current(layout).stages["things"]
    for other in (value + 1, value + 2):
        release(layout, other)
        prune(layout)
    assert not things.folder.exists()
    return things


def test_a_reader_keeps_what_it_opened(layout: Layout) -> None:
    things = removed(layout)
    np.testing.assert_array_equal(things["large"], LARGE)
    np.testing.assert_array_equal(things["small"], SMALL)
    assert things["empty"].shape == (0, 3)
    with things.named("graph") as path:
        assert path.read_bytes() == bytes(100_000)
        copied = path
    assert not copied.exists()
    with open_current(layout).stages["things"].named("graph") as path:
        assert path.read_bytes() == b"\x02" * 100_000
        assert path.is_relative_to(layout.root)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_keeps_it_too(layout: Layout) -> None:
    things = removed(layout)
    child = os.fork()
    if child == 0:
        os._exit(0 if int(things["large"][-1]) == 69_999 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_dead_reader_holds_nothing(layout: Layout) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from ketrag_fast.storage.generation import open_current\n"
        "from ketrag_fast.storage.layout import Layout\n"
        "things = open_current(Layout(pathlib.Path(sys.argv[1]))).stages['things']\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert python(code, str(layout.root), cwd=ROOT).code != 0
    for value in (1, 2):
        release(layout, value)
        prune(layout)
    assert layout.generations() == [2, 3]


def test_hashes_do_not_count_for_the_digest(layout: Layout, tmp_path: Path) -> None:
    digest = open_current(layout).manifest.digest
    hashes_of(open_current(layout)).unlink()
    assert open_current(layout, "full").manifest.digest == digest
    record = FileRecord(5, hashlib.sha256().hexdigest(), "|u1", (5,))
    assert hash_ranges({"x": record}) == {}
    assert open_hashes(tmp_path, {"x": record}) == {}
