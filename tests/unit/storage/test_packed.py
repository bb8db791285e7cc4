"""Arrays that are stored packed: they come back, are smaller, and damage is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.arrays import Arrays, write_arrays
from ketrag_fast.storage.manifest import FileRecord

DRAW = np.random.default_rng(5)
ROWS = np.sort(DRAW.integers(0, 50_000, (2_000, 40)), axis=1).reshape(-1)
ARRAYS: dict[str, NDArray[Any]] = {
    "rows": ROWS.astype(np.uint32),
    "ends": np.cumsum(DRAW.integers(0, 90, 30_000)).astype(np.uint64),
    "spans": np.stack([np.zeros(20_000), DRAW.integers(1, 700, 20_000)], axis=1).astype(np.uint32),
    "text": np.frombuffer(b"Nansen sailed with the Fram. " * 4_000, np.uint8),
    "counts": np.ones(50_000, np.uint32),
    "extremes": np.array([0, 2**32 - 1] * 5_000, np.uint32),
    "hashes": DRAW.integers(0, 256, (3_000, 32)).astype(np.uint8),
    "wide": DRAW.integers(0, 9, (4_000, 5)).astype(np.uint32),
    "vectors": DRAW.standard_normal((500, 64)).astype(np.float32),
    "few": np.arange(40, dtype=np.uint32),
    "none": np.zeros(0, np.uint32),
}
PACKED = {"rows", "ends", "spans", "text", "counts", "wide"}


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, dict[str, FileRecord]]:
    return tmp_path, write_arrays(tmp_path, ARRAYS)


def test_arrays_come_back_and_those_that_shrink_are_packed(
    written: tuple[Path, dict[str, FileRecord]],
) -> None:
    folder, records = written
    assert {name for name, record in records.items() if record.packed} == PACKED
    for mapped in (None, {n: _core.MappedFile(folder / f"{n}.pack") for n in PACKED}):
        found = Arrays(folder, records, mapped)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert not found[name].flags.writeable
        text = ARRAYS["text"]
        assert {name: found.packed_bytes(name) for name in found} == {
            n: text.size if n == "text" else 0 for n in found
        }
        assert b"".join(piece.tobytes() for piece in found.pieces("text")) == text.tobytes()
        np.testing.assert_array_equal(found.read_bytes("text", 100, 70_000), text[100:70_000])
    for name in PACKED:
        assert 8 * records[name].bytes <= 7 * ARRAYS[name].nbytes
        assert (folder / f"{name}.pack").stat().st_size == records[name].bytes
        assert not (folder / f"{name}.npy").exists()
        assert FileRecord.from_json(records[name].to_json()) == records[name]
    assert records["rows"].bytes * 8 < 13 * len(
        ROWS
    )  # ids below 50,000, forty to a row: 11.7 bits and the form


def test_the_same_values_have_the_same_bytes(tmp_path: Path) -> None:
    for name, array in ARRAYS.items():
        if name in PACKED:
            flat = array.reshape(-1).view(np.uint8)
            made = [tmp_path / f"{name}-{threads}" for threads in (1, 2, 5)]
            for path, threads in zip(made, (1, 2, 5), strict=True):
                _core.pack_file(flat, array.dtype.str, array.shape, path, threads=threads)
            assert len({path.read_bytes() for path in made}) == 1, name
    assert _core.pack_file(np.zeros(8, np.uint8), "<f8", (1,), tmp_path / "none") is None
    assert not (tmp_path / "none").exists()
    assert _core.pack_file(np.zeros(8, np.uint8), "<u4", (3,), tmp_path / "none") is None


@pytest.mark.parametrize("name", sorted(PACKED))
def test_damage_is_found_with_a_checksum_and_never_crashes_without(
    written: tuple[Path, dict[str, FileRecord]], name: str
) -> None:
    folder, records = written
    path, record = folder / f"{name}.pack", records[name]
    whole = path.read_bytes()
    places = {*range(40), *range(40, len(whole), max(len(whole) // 40, 1)), len(whole) - 1}
    for place in sorted(places):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x41
        path.write_bytes(spoilt)
        with pytest.raises(IndexDamaged, match=path.name):
            Arrays(folder, records, {name: _core.MappedFile(path, record.bytes, record.digest)})[name]
        try:
            found = Arrays(folder, records, {name: _core.MappedFile(path)})[name]
            assert found.shape == ARRAYS[name].shape
        except IndexDamaged as error:
            assert path.name in str(error)
    for kept in (0, 7, 25, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(IndexDamaged, match=path.name):
            Arrays(folder, records, {name: _core.MappedFile(path)})[name]


def test_a_record_that_lies_about_its_file_is_refused(written: tuple[Path, dict[str, FileRecord]]) -> None:
    folder, records = written
    about = records["rows"].to_json()
    for wrong in ({"shape": [7]}, {"dtype": "<u8"}):
        record = FileRecord.from_json({**about, **wrong})
        with pytest.raises(IndexDamaged, match=r"rows\.pack"):
            Arrays(folder, {"rows": record})["rows"]
    for packed in (1, "yes", None):
        with pytest.raises(ValueError, match="packed"):
            FileRecord.from_json({**about, "packed": packed})
    with pytest.raises(ValueError, match="packed"):
        FileRecord.from_json({**about, "dtype": "raw"})


def test_earlier_chunks_are_copied_and_change_no_byte(tmp_path: Path) -> None:
    old = np.frombuffer(b"".join(b"Passage %d of the log. " % n for n in range(20_000)), np.uint8)
    folders = [tmp_path / name for name in ("old", "fresh", "again")]
    for folder in folders:
        folder.mkdir()
    before = write_arrays(folders[0], {"text": old, "few": np.arange(3), "now_packed": np.arange(3)})
    now = {
        "text": np.concatenate([old, old[:90_000]]),
        "few": np.arange(3),
        "now_packed": np.ones(50_000, np.uint32),
        "new": old[:70_000],
    }
    fresh = write_arrays(folders[1], now)
    earlier = Arrays(folders[0], before)
    assert write_arrays(folders[2], now, earlier) == fresh
    assert earlier.packed_path("text") == folders[0] / "text.pack"
    assert earlier.packed_path("few") is None and earlier.packed_path("new") is None
