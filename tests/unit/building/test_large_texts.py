"""Large texts of stages that are not run again are read from a file instead of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.building import async_writer
from ketrag_fast.building.async_writer import Kept, Outputs
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage import arrays
from ketrag_fast.storage.array_spool import is_spooled
from ketrag_fast.storage.arrays import write_arrays
from ketrag_fast.storage.manifest import StageRecord

TEXT = np.frombuffer(b"The Fram drifted with the ice. " * 4000, np.uint8)


def outputs(tmp_path: Path) -> Outputs:
    """The outputs of a stage that an earlier run wrote."""
    folder, scratch = tmp_path / "stage", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    files = write_arrays(folder, {"texts": TEXT, "numbers": np.arange(40_000, dtype=np.uint32)})
    assert files["texts"].packed
    return Outputs(Kept("units", "resumed", folder, StageRecord("units", 1, "f", 0.0, files)), None, scratch)


def test_they_are_the_same_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_writer, "_LARGE", 1000)
    monkeypatch.setattr(arrays, "_PIECE", 777)
    found = outputs(tmp_path)
    assert is_spooled(found["texts"])
    assert not found["texts"].flags.writeable
    np.testing.assert_array_equal(found["texts"], TEXT)
    assert found["texts"] is found["texts"]
    assert not is_spooled(found["numbers"])
    np.testing.assert_array_equal(found["numbers"], np.arange(40_000))


def test_small_ones_stay_in_memory(tmp_path: Path) -> None:
    found = outputs(tmp_path)
    assert not is_spooled(found["texts"])
    np.testing.assert_array_equal(found["texts"], TEXT)


def test_a_file_that_was_cut_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_writer, "_LARGE", 1000)
    found = outputs(tmp_path)
    path = next((tmp_path / "stage").glob("texts*"))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(IndexDamaged, match="texts"):
        found["texts"]
