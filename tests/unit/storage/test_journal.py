"""What is kept comes back as it was, whoever it came from and however long it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.models.extraction.chunk_reader import dumps, loads
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.models.llms.protocol import ModelReply
from ketrag_fast.storage.journal import LONGEST, Journal, KeptReply, reply_key


def row(text: str, turn: int = 0, attempt: int = 1, **more: object) -> KeptReply:
    return KeptReply(turn, attempt, text, "stop", None, "clean", 1, 1)._replace(**more)


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    keys = [reply_key("t", str(n)) for n in range(1000)]
    with Journal(tmp_path / "x.sqlite") as journal:
        reader = journal.reader("key", "spec", {"a": 1})
        for key in keys[::2]:
            journal.put(reader.number, key, row("second", 0, 2))
            journal.put(reader.number, key, row("gleaned", 1), ModelReply(0, "", "stop", 5, 3, 1, 0.5))
            journal.put(reader.number, key, row("first"))
    with Journal(tmp_path / "x.sqlite") as journal:
        again = journal.reader("key", "moved", {})
        assert (again.number, again.spec, dict(again.identity)) == (reader.number, "moved", {"a": 1})
        found = dict(journal.rows(again.number, [*keys, keys[0]]))
        assert list(found) == list(range(1001))
        assert [r.text for r in found[0]] == [r.text for r in found[1000]] == ["first", "second", "gleaned"]
        assert found[1] == []
        assert all(r.text == "" for _, rows in journal.rows(1, keys, text=False) for r in rows)
        assert journal.totals(1, keys) == {
            "calls": 1500,
            "tokens_in": 2500,
            "tokens_out": 1500,
            "tokens_shared": 500,
            "seconds": 250.0,
        }


def test_readers_are_apart_and_the_last_one_is_known(tmp_path: Path) -> None:
    key = reply_key("text")
    with Journal(tmp_path / "x.sqlite") as journal:
        assert journal.latest() is None
        one, other = journal.reader("1", "a", {}), journal.reader("2", "b", {})
        journal.put(one.number, key, row("one"))
        assert list(journal.rows(other.number, [key])) == [(0, [])]
        assert journal.latest() == other
        assert journal.latest("a") == one
        journal.reader("1", "a", {})
        latest = journal.latest()
        assert latest is not None
        assert latest.key == "1"
        assert journal.known("3") is None


@pytest.mark.parametrize("text", ["", "\x00", "half \ud800 a pair", "é" * LONGEST, "😀" * LONGEST])
def test_any_text_is_kept_up_to_a_length(tmp_path: Path, text: str) -> None:
    with Journal(tmp_path / "x.sqlite") as journal:
        number = journal.reader("1", "a", {}).number
        journal.put(number, b"k" * 16, row(text))
        kept = next(journal.rows(number, [b"k" * 16]))[1][0].text
    assert len(kept.encode()) <= LONGEST + 3
    assert text.encode("utf-8", "replace").decode()[:1000] == kept[:1000]


def test_keys_do_not_run_together() -> None:
    assert reply_key("ab", "c") != reply_key("a", "bc") != reply_key("abc")


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"not a database, by far" * 100)
    with pytest.raises(IndexDamaged):
        Journal(tmp_path / "x.sqlite")


def test_many_rows_or_none(tmp_path: Path) -> None:
    with Journal(tmp_path / "x.sqlite") as journal:
        number = journal.reader("1", "a", {}).number
        with pytest.raises(RuntimeError), journal.transaction():
            journal.put(number, b"k" * 16, row("gone"))
            raise RuntimeError
        assert next(journal.rows(number, [b"k" * 16]))[1] == []
        with journal.transaction():
            journal.put(number, b"k" * 16, row("there"))
    with sqlite3.connect(tmp_path / "x.sqlite") as db:
        assert db.execute("SELECT count(*) FROM replies").fetchone()[0] == 1


def test_records_come_back_or_nothing() -> None:
    found = Extraction((EntityRecord("A", "t", "d"),), (RelationRecord("A", "B", "é", 2.5),), 3)
    assert loads(dumps(found)) == found
    for bad in ("", "{", "[]", "7", '{"e":[[1,2,3]],"r":[],"dropped":0}', '{"e":[],"r":[],"dropped":"x"}'):
        assert loads(bad) is None
    assert loads('{"e":[],"r":[["a","b","c",1e999]],"dropped":0}') is None
    assert loads("[" * 100_000) is None


@pytest.mark.parametrize(
    "change",
    [
        "text = x'00'",
        "finish = 'length'",
        "error = 'no'",
        "verdict = 'repaired'",
        "entities = 2",
        "parser = 3",
        "records = x'ff'",
        "turn = 1",
        "seal = x'00'",
    ],
)
def test_an_altered_reply_is_an_error_once_and_then_asked_for_again(tmp_path: Path, change: str) -> None:
    path, keys = tmp_path / "x.sqlite", [reply_key(str(n)) for n in range(3)]
    with Journal(path) as journal:
        number = journal.reader("1", "a", {}).number
        for key in keys:
            journal.put(number, key, row("text"))
        journal.check()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE replies SET {change} WHERE chunk = ?", (keys[1],))
    with Journal(path, read_only=True) as journal, pytest.raises(IndexDamaged, match="1 cached replies"):
        journal.check()
    with Journal(path) as journal:
        with pytest.raises(IndexDamaged, match="1 cached replies") as caught:
            list(journal.rows(number, keys))
        assert caught.value.hint
        assert [len(found) for _, found in journal.rows(number, keys)] == [1, 0, 1]
        journal.check()


def test_a_judged_reply_is_sealed_again(tmp_path: Path) -> None:
    path, key = tmp_path / "x.sqlite", reply_key("x")
    with Journal(path) as journal:
        number = journal.reader("1", "a", {}).number
        journal.put(number, key, row("text"))
        journal.judge(number, key, row("text")._replace(verdict="repaired", parser=2))
        assert next(journal.rows(number, [key]))[1][0].verdict == "repaired"
        journal.check()


@pytest.mark.parametrize("identity", ["", "[", "[" * 99_999, "7", "null"])
def test_a_reader_whose_identity_is_no_object(tmp_path: Path, identity: str) -> None:
    path = tmp_path / "x.sqlite"
    with Journal(path) as journal:
        journal.reader("1", "a", {})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE readers SET identity = ?", (identity,))
    with Journal(path) as journal, pytest.raises(IndexDamaged, match="damaged"):
        journal.known("1")
