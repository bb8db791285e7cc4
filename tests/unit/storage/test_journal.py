"""What is kept comes back as it was, whoever it came from and however long it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ketrag_fast.backends.llms.protocol import ModelReply
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.extraction.reader import dumps, loads
from ketrag_fast.extraction.records import EntityRecord, Extraction, RelationRecord
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
