"""Positions of new files, batches of touched files, and portions of texts without vectors."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np

from ketrag_fast import Document, Index, Settings
from ketrag_fast.building import touched
from ketrag_fast.building.file_changes import FileChanges, Places, SourceChanges
from ketrag_fast.building.placeholders import Unembedded
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.known_files import KnownFile
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Failure

UNREADABLE = os.fsdecode(b"\xe9.md")


def row(name: str, place: int, documents: int = 1, notes: tuple[Failure, ...] = ()) -> KnownFile:
    return KnownFile(1, place, name, f"/s/{name}", b"", b"", 0, documents, notes)


def test_new_files_are_placed_in_the_middle_between_their_neighbours() -> None:
    places = Places([row("e", 20, 0), row("a", 0, 2), row("", -1), row("c", 10)], 100)
    assert places.are_in_order
    expected = {"0": None, "b": 6, "d": 15, "f": 121, "a": None, UNREADABLE: 121}
    assert {name: places.between(name) for name in expected} == expected
    assert [places.end(place) for place in (0, 5, 10, 19, 20)] == [10, 10, 20, 20, None]
    places.add("b", 6, 3)
    assert (places.between("bb"), places.between("aa"), places.end(0), places.end(6)) == (9, 4, 6, 10)
    places.add("bb", 9, 0)  # a file without documents has a position, too
    assert (places.between("bc"), places.between("ba"), places.end(6)) == (None, None, 9)
    assert places.are_in_order
    assert Places([], 100).between("a") == 100 and Places([], 100).are_in_order
    assert Places([row("a", 0, 2), row("b", 2)], 1).are_in_order
    assert not Places([row("a", 0, 2), row("b", 1)], 1).are_in_order
    assert not Places([row("b", 0), row("a", 5)], 1).are_in_order


def test_a_source_without_most_of_its_files_may_be_a_disk_that_is_not_connected() -> None:
    source = SourceRow(1, "path", "s", "/s")
    skipped = row("x", 9, 0, (Failure("x", "format", "unknown"),))
    for files, gone, expected in ((3, 2, True), (4, 2, False), (1, 1, False), (5, 3, True), (0, 0, False)):
        change = SourceChanges(source, None, files, True)
        change.gone = [*(row(str(n), n) for n in range(gone)), skipped, skipped, skipped]
        assert change.is_emptied is expected, (files, gone)
        for needs_all in (True, False):
            change.needs_all = needs_all
            assert FileChanges((change,)).needs_all is needs_all
            assert FileChanges((change,), is_published=False).needs_all


def test_touched_files_are_compared_in_bounded_batches() -> None:
    def sizes(rows: list[int]) -> list[list[int]]:
        stats = [(number, struct.pack("<qqqq", size, 0, 0, 0)) for number, size in enumerate(rows)]
        return [[number for number, _ in batch] for batch in touched._batches(stats)]

    most, number = touched._BATCH_BYTES, touched._BATCH
    assert sizes([]) == []
    assert sizes([most, 0, 1, most - 1, 1, 2 * most, 1]) == [[0, 1], [2, 3], [4], [5], [6]]
    assert [len(batch) for batch in sizes([1] * (2 * number + 1))] == [number, number, 1]


def test_documents_without_vectors_are_taken_in_portions(tmp_path: Path) -> None:
    documents = [Document(f"d{n}", f"Page {n} of the log of the Fram.") for n in range(5)]
    Index.build(documents, tmp_path / "index", settings=Settings(modes="bm25", threads=1)).close()
    found = Unembedded.__new__(Unembedded)
    found._hashes = open_current(Layout(tmp_path / "index")).stages["units"]["document_hashes"]
    found._rows, found._sizes = np.array([0, 1, 3, 4]), np.array([3, 1, 2, 4])
    with Tables(tmp_path / "index" / "index.sqlite", read_only=True) as tables:
        for most, ids, left in (
            (1, {"d0": 0}, 7),
            (3, {"d0": 0}, 7),
            (4, {"d0": 0, "d1": 1}, 6),
            (5, {"d0": 0, "d1": 1, "d3": 3}, 4),
            (99, {"d0": 0, "d1": 1, "d3": 3, "d4": 4}, 0),
            (None, {"d0": 0, "d1": 1, "d3": 3, "d4": 4}, 0),
        ):
            assert (found.take(tables, most), found.count) == (ids, left), most
        found._rows = found._rows[:0]
        assert found.take(tables) == {}
