"""Deltas that somebody who knows the format made to harm: a typed error, or an index that answers.

Each is stored with right hashes, so that they are not what stops it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.building import delta
from ketrag_fast.building.async_writer import write_stage
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.index.health import examine
from ketrag_fast.storage.delta import DELTA
from ketrag_fast.storage.generation import open_current, publish
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.spec.stage import Stage
from tests.index.test_hostile_indexes import changed, wrong_with

SETTINGS = Settings(threads=1, modes="bm25,walk", language="english")
pytestmark = pytest.mark.usefixtures("deltas_of_any_size")
NUMBERS = (0, 1, 2, 7, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1)


def page(n: int, text: str = "") -> Document:
    return Document(f"d{n}", text or f"Captain Nansen{n} froze with the Fram in harbour {n}.", f"Port {n}")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """An index with a delta: a document changed, one removed, one added."""
    path = tmp_path / "good"
    with Index.build([page(n) for n in range(9)], path, settings=SETTINGS) as index:
        index.update(add=[page(2, "The Maud left Port 3."), page(9)], remove="d5")
    assert open_current(Layout(path)).delta is not None
    return path


def arrays_of(path: Path) -> tuple[Any, dict[str, Any]]:
    """The description of the delta, and its other arrays."""
    own = open_current(Layout(path))
    folder = own.folder / DELTA
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("index", "pieces", "values", "steps")}
    return json.loads(arrays.pop("index").tobytes()), arrays


def forge(good: Path, place: Path, about: Any, arrays: dict[str, Any]) -> None:
    """Copy the index and publish another delta over the same base."""
    shutil.copytree(good, place)
    layout = Layout(place)
    current = open_current(layout)
    data = json.dumps(about).encode("utf-8", "surrogatepass")
    stored = {"index": np.frombuffer(data, np.uint8), **arrays}
    folder, fingerprint = layout.work / DELTA, current.records()[DELTA].fingerprint
    record = write_stage(Stage(DELTA, 1, (), (), ""), fingerprint, folder, stored, 0.1)
    records = current.records()
    publish(
        layout,
        [*((current.folder / name, records[name]) for name in delta.STAGES), (folder, record)],
        settings=current.manifest.settings,
        documents=current.manifest.documents,
        version=current.manifest.version,
    )
    shutil.rmtree(folder)


def use(place: Path) -> None:
    """Read and change the index."""
    with Index.open(place) as index:
        for mode in index.modes:
            index.retrieve("Which harbour froze?", mode=mode, budget=300)
        index.stats()
        index.inspect.documents()
    with Index.open(place) as index:
        index.update(add=page(3, "The Gjøa left Port 3."), remove="d7")
        index.retrieve("Which harbour froze?", budget=300)


def found_wrong(good: Path, place: Path, about: Any, arrays: dict[str, Any]) -> str | None:
    """Numbers are not checked when they are read, as in any array whose hash is right: kernels check."""
    try:
        forge(good, place, about, arrays)
        found = wrong_with(lambda: examine(place)) or wrong_with(lambda: use(place))
        return None if found is not None and found.startswith("InternalError") else found
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_a_good_one_is_taken(good: Path, tmp_path: Path) -> None:
    forge(good, tmp_path / "ix", *arrays_of(good))
    with Index.open(tmp_path / "ix") as one, Index.open(good) as other:
        for mode in one.modes:
            assert one.retrieve("Maud", mode=mode).text == other.retrieve("Maud", mode=mode).text
    use(tmp_path / "ix")


def test_descriptions(good: Path, tmp_path: Path) -> None:
    about, arrays = arrays_of(good)
    wrong, count = {}, 0
    for name, tree in changed(about, every=6):
        count += 1
        found = found_wrong(good, tmp_path / "ix", tree, arrays)
        if found is not None:
            wrong[name] = found
    assert count > 25
    assert wrong == {}


@pytest.mark.parametrize("text", ["", "null", "[" * 100_000, '{"a":' * 100_000, "9" * 9000, "NaN", "\xff"])
def test_descriptions_that_are_none(good: Path, tmp_path: Path, text: str) -> None:
    _, arrays = arrays_of(good)
    place = tmp_path / "ix"
    forge(good, place, 0, {**arrays, "index": np.frombuffer(text.encode("latin-1"), np.uint8)})
    with pytest.raises(IndexDamaged, match=r"the changes in .*delta are invalid"):
        Index.open(place)
    assert any(isinstance(one.error, IndexDamaged) for one in examine(place))


@pytest.mark.parametrize("which", ["pieces", "values", "steps"])
def test_numbers(good: Path, tmp_path: Path, which: str) -> None:
    about, arrays = arrays_of(good)
    dice, wrong = Random(which), {}
    for _ in range(20):
        array = arrays[which].copy()
        flat = array.reshape(-1)
        done = [(dice.randrange(len(flat)), dice.choice(NUMBERS)) for _ in range(dice.choice((1, 1, 2, 5)))]
        for at, number in done:
            flat[at] = number
        found = found_wrong(good, tmp_path / "ix", about, {**arrays, which: array})
        if found is not None:
            wrong[str(done)] = found
    assert wrong == {}


def test_pieces_cannot_repeat_an_array(good: Path, tmp_path: Path) -> None:
    """A delta of some kilobytes that would make gigabytes of an array."""
    about, arrays = arrays_of(good)
    index = {name: (count, size) for name, _, count, _, size in about["arrays"]}
    at = 0
    for entry in about["arrays"]:
        if entry[0] == "units.unit_texts_blob":
            break
        at += entry[2]
    base = open_current(Layout(good)).delta
    assert base is not None and "units.unit_texts_blob" in index
    whole = base.base["units"].file("unit_texts_blob").shape()[0]
    times = 50
    pieces = np.array([[n * whole, 0, 0, 0] for n in range(times)], np.uint64)
    count = entry[2]
    entry[2], entry[3], entry[4] = times, 0, times * whole
    every = np.concatenate(
        [arrays["pieces"].reshape(-1, 4)[:at], pieces, arrays["pieces"].reshape(-1, 4)[at + count :]]
    )
    forge(good, tmp_path / "ix", about, {**arrays, "pieces": every.reshape(-1)})
    with pytest.raises(IndexDamaged, match=r"pieces of units\.unit_texts_blob overlap"):
        Index.open(tmp_path / "ix")
