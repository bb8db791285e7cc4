"""Vectors and replies that several indexes keep, as those of one: whatever the order of the parts."""

from __future__ import annotations

import sqlite3
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.copy_tables import new_tables
from ketrag_fast.storage.journal import Journal, KeptReply, reply_key
from ketrag_fast.storage.tables import Tables
from ketrag_fast.storage.vector_cache import VectorTable, text_hash

KEYS = [text_hash(name) for name in ("a", "b", "c", "d")]


def reply(text: str, verdict: str = "clean", turn: int = 0, attempt: int = 1) -> KeptReply:
    return KeptReply(turn, attempt, text, "stop", None, verdict, 1, 3, f"records of {text}")  # type: ignore[arg-type]


def part(path: Path, vectors: dict[str, float], replies: dict[str, list[KeptReply]], other: str) -> Path:
    """Tables with some vectors of model m (after another model's, so that numbers differ) and replies."""
    Tables(path).close()
    with VectorTable(path) as table:
        for name in sorted({"m", other}, key=lambda mark: (mark == "m", mark)):
            table.add(name, 2, None, f"spec of {name} in {path.name}", {"engine": path.name})
            number = table.record(name)
            assert number is not None
            for text, value in vectors.items():
                table.put(number[0], "document", [text_hash(text)], np.array([[value, 1.0]], np.float32))
    with Journal(path) as journal:
        journal.reader(f"reader {other}", "x", {})
        own = journal.reader("reader", f"spec in {path.name}", {"a": 1})
        for chunk, rows in replies.items():
            for row in rows:
                journal.put(own.number, reply_key(chunk), row)
        journal.add_hits(own.number, 2)
    return path


def content(path: Path) -> list[object]:
    """All rows that are kept, with names in the place of numbers."""
    with sqlite3.connect(path) as db:
        rows: list[object] = db.execute(
            "SELECT fingerprint, spec, engine, role, text, vector FROM vectors"
            " JOIN vector_models ON model = number ORDER BY fingerprint, role, text"
        ).fetchall()
        rows += db.execute(
            "SELECT key, spec, hits, chunk, turn, attempt, text, verdict, records FROM readers"
            " LEFT JOIN replies ON reader = number ORDER BY key, chunk, turn, attempt"
        ).fetchall()
    db.close()
    return rows


def merged(parts: list[Path], to: Path) -> Path:
    with new_tables(to) as tables:
        tables.add_readers(parts)
        for path in parts:
            tables.copy(path, [])
    return to


def test_the_order_of_the_parts_does_not_matter(tmp_path: Path) -> None:
    parts = [
        part(
            tmp_path / "p0",
            {"a": 0.25, "b": 0.5},
            {"one": [reply("first")], "two": [reply("bad", "unusable")]},
            "n",
        ),
        part(tmp_path / "p1", {"a": 0.75, "c": 0.1}, {"one": [reply("other")], "two": [reply("good")]}, "k"),
        part(tmp_path / "p2", {"a": 0.5, "d": 0.2}, {"three": [reply("x"), reply("y", turn=1)]}, "n"),
    ]
    found = [content(merged(list(order), tmp_path / "out")) for order in permutations(parts)]
    assert all(rows == found[0] for rows in found)
    with VectorTable(tmp_path / "out") as table:
        record = table.record("m")
        assert record is not None
        out = np.zeros((4, 2), np.float32)
        assert table.get(record[0], "document", KEYS, out).all() and not table.altered
        assert out[1:, 0].tolist() == [np.float32(value) for value in (0.5, 0.1, 0.2)]
        assert out[0, 0] in (0.25, 0.5, 0.75)
        table.check(tmp_path / "out")
    with Journal(tmp_path / "out") as journal:
        journal.check()
        own = journal.known("reader")
        assert own is not None and own.hits == 6
        asked = [reply_key(name) for name in ("one", "two", "three", "four")]
        rows = [[row.text for row in rows] for _, rows in journal.rows(own.number, asked)]
    assert rows[0] in (["first"], ["other"])
    assert rows[1:] == [["good"], ["x", "y"], []]


def test_an_altered_reply_is_named(tmp_path: Path) -> None:
    path = part(tmp_path / "p0", {}, {"one": [reply("first")]}, "n")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE replies SET text = x'00'")
    db.close()
    with pytest.raises(IndexDamaged, match="cached replies are altered") as altered:
        merged([path], tmp_path / "out")
    assert "run `ketrag index` in that folder twice" in str(altered.value.hint)


def test_a_part_that_lacks_a_table_is_damaged(tmp_path: Path) -> None:
    path = part(tmp_path / "p0", {}, {"one": [reply("first")]}, "n")
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE locators")
    db.close()
    with pytest.raises(IndexDamaged, match="locators"):
        merged([path], tmp_path / "out")
