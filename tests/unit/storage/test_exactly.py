"""Small functions of the storage whose whole results are written down."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import IndexDamaged, IndexMissing
from ketrag_fast.storage.checksum import raw_digest, text_digest
from ketrag_fast.storage.delta import _as_numbers
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.journal import Journal, reply_key, seal_of
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.source_files import file_of
from ketrag_fast.storage.tables import Tables
from ketrag_fast.storage.vector_cache import VectorTable, _sum, text_hash
from ketrag_fast.types import Failure


def blake(*parts: bytes, size: int) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=size).digest()


def test_keys_and_checksums_are_those_of_the_format() -> None:
    """Another key would make every stored reply and vector useless: models would be called again."""
    text, marked = "tëxt\ud800", "tëxt\ud800".encode("utf-8", "surrogatepass")
    sizes = [len(part).to_bytes(8, "little") for part in (b"title", marked)]
    assert reply_key("title", text) == blake(sizes[0], b"title", sizes[1], marked, size=16)
    assert text_hash(text) == blake(marked, size=16)
    assert seal_of(7, [b"k\0ey", 0, b"\xc3\xa9"]) == blake(b"7", b"4 k\0ey", b"1 0", b"2 \xc3\xa9", size=8)
    assert seal_of(7, ["tëxt", None]) == blake(b"7", b"7 ", "'tëxt'".encode(), b"4 None", size=8)
    assert _sum("role", b"key", b"vector") == zlib.crc32(b"rolekeyvector").to_bytes(4, "little")
    for count in (1, 1 << 16, 1 << 17):  # concatenated, or hashed one by one
        length = count.to_bytes(8, "little")
        expected = blake((2).to_bytes(8, "little"), b"ab", length, b"x" * count, size=32)
        assert (
            raw_digest([b"ab", memoryview(b"x" * count)])
            == expected
            == bytes.fromhex(text_digest(["ab", "x" * count]))
        )


def test_values_of_a_change_are_numbers_with_the_same_bits() -> None:
    rows = [
        (np.array([[1.5], [-2.0]], np.float32), [0x3FC00000, 0xC0000000]),
        (np.array([-1, 3], np.int8), [0xFF, 3]),
        (np.array([[7, 255]], np.uint8)[:, ::-1], [255, 7]),
        (np.array([2**63 + 1], np.uint64), [2**63 + 1]),
    ]
    for values, expected in rows:
        numbers = _as_numbers(values)
        assert (numbers.tolist(), numbers.dtype) == (expected, np.uint64), values


def test_replies_survive_a_power_cut_and_readers_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"

    def modes(opened: Tables | Journal | VectorTable) -> tuple[str, int]:
        mode, synchronous = (
            opened._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        )
        return mode, synchronous

    with Journal(path) as journal:
        assert modes(journal) == ("wal", 2)  # FULL
        assert journal.latest_model() is None and journal.latest() is None
        journal.reader("chunks", "a", {"n": 1})
        first = journal.model("print", "b", {"n": 2})
        journal.reader("other chunks", "a", {"n": 3})
        assert journal.latest_model() == first == journal.known("model print")
        assert (first.key, first.spec, first.identity, first.hits) == ("model print", "b", {"n": 2}, 0)
        assert journal.latest_model("a") is None
        assert [journal.latest(spec).key for spec in (None, "a") if journal.latest(spec)] == [
            "other chunks"
        ] * 2
        journal.reader("chunks", "c", {"n": 1})
        assert journal.latest().key == "chunks" and journal.latest("a").key == "other chunks"
    with VectorTable(path) as vectors:
        assert modes(vectors) == ("wal", 1)  # NORMAL
        vectors.add("other", 5, None, "b", {})
        vectors.add("print", 3, 512, "a", {"name": "e"})
        assert vectors.record("print") == (2, 3, 512, {"name": "e"}) and vectors.record("third") is None
        assert [vectors.dimension(name) for name in ("other", "print", "third")] == [5, 3, None]
        vectors.put(2, "text", [b"k" * 16, b"l" * 16], np.eye(2, 3))  # type: ignore[arg-type] # stored as float32
        assert (vectors.count("print"), vectors.count("other"), vectors.altered) == (2, 0, 0)
        out = np.full((3, 3), 7, np.float32)
        assert vectors.get(2, "text", [b"l" * 16, b"m" * 16, b"k" * 16], out).tolist() == [True, False, True]
        assert out.tolist() == [[0, 1, 0], [7, 7, 7], [1, 0, 0]]
        assert (vectors.forget("print"), vectors.count("print"), vectors.record("print")) == (2, 0, None)
        assert vectors.record("other") == (1, 5, None, {})
    before = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir()}
    with Journal(path, read_only=True) as journal:
        assert journal.latest_model() is not None
        with pytest.raises(Exception, match="readonly"):
            journal._db.execute("DELETE FROM readers")
    assert {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir() if one.name in before} == before


def test_an_unfinished_index_names_the_command_that_continues_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "index")
    layout.create()
    Tables(layout.tables).close()
    for command in ("index", "merge"):
        if command == "merge":
            (layout.work / MERGE).write_text("")
        with pytest.raises(IndexMissing, match="was never finished") as unfinished:
            open_current(layout)
        assert unfinished.value.hint == f"run the same `ketrag {command}` again: it goes on from there"


def test_the_file_of_a_document(tmp_path: Path) -> None:
    base = tmp_path / "notes"
    (base / "sub").mkdir(parents=True)
    for name in ("a.md", "sub/rows.csv", os.fsdecode(b"caf\xe9.md")):
        (base / name).write_text("x")
    rows = [
        ("a.md", base / "a.md"),
        ("notes/a.md", base / "a.md"),
        ("sub/rows.csv#12", base / "sub" / "rows.csv"),
        ("sub/rows.csv:3", base / "sub" / "rows.csv"),
        ("caf\\xe9.md", base / os.fsdecode(b"caf\xe9.md")),
        ("b.md", None),
        ("sub", None),
    ]
    for name, expected in rows:
        assert file_of(str(base), name) == expected, name
    assert file_of(str(base / "a.md"), "whatever") == base / "a.md"


def test_rows_of_another_type_are_named(tmp_path: Path) -> None:
    """SQLite reads such rows of an altered file, although it does not store them in strict tables."""
    path = tmp_path / "index.sqlite"
    with Tables(path) as tables, tables.transaction():
        tables.add_sources([("path", "docs", "/docs")])
        tables.set_failures([Failure("x", "document", "bad")])
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA writable_schema = ON")
    db.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name IN ('failures', 'sources')"
    )
    db.close()
    for change, words in (
        ("failures SET message = x'00'", r"the row of a failure is invalid: \('x', 'document', b"),
        ("sources SET label = x'00'", "the rows of these sources are altered: 1"),
    ):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(f"UPDATE {change}")
        with Tables(path) as tables, pytest.raises(IndexDamaged, match=words):
            (tables.failures if change.startswith("failures") else tables.sources)()
