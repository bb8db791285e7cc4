"""The content hashes of documents: read once for many changes, and never those of other documents."""

from __future__ import annotations

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.storage.document_table import DocumentTable, DocumentTotals
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Document


def put(tables: Tables, *texts: str) -> None:
    """Add documents with these texts, which are their ids, too."""
    place = tables.count()
    documents = [Document(text, text) for text in texts]
    tables.insert([(one, 1, place + at, content_of(one)) for at, one in enumerate(documents)])


def wanted(*texts: str) -> list[str]:
    return [content_of(Document(text, text)) for text in texts]


def found(tables: Tables) -> list[str]:
    return [bytes(row).hex() for row in tables.contents()]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often the hashes are read from a file."""
    counted: list[int] = []
    read = DocumentTable._read_totals

    def counting(self: DocumentTable) -> tuple[bytes, DocumentTotals]:
        counted.append(1)
        return read(self)

    monkeypatch.setattr(DocumentTable, "_read_totals", counting)
    return counted


def made(path: Path) -> Tables:
    tables = Tables(path)
    with tables.transaction():
        tables.add_sources([("documents", "given", "")])
        put(tables, "ice", "ship")
    return tables


def test_hashes_are_read_once_until_documents_change(tmp_path: Path, reads: list[int]) -> None:
    with made(tmp_path / "index.sqlite") as tables:
        assert found(tables) == found(tables) == wanted("ice", "ship")
    with Tables(tmp_path / "index.sqlite") as tables:
        assert found(tables) == wanted("ice", "ship") and len(reads) == 1
        with tables.transaction():
            put(tables, "pole")
            assert found(tables) == wanted("ice", "ship", "pole") and len(reads) == 2
        key = tables.known(["ice"])["ice"].key
        with tables.transaction():
            tables.move(key, 1, 9)
        assert found(tables) == wanted("ship", "pole", "ice")
        with tables.transaction():
            tables.remove([key])
        assert found(tables) == wanted("ship", "pole")
        ship = tables.known(["ship"])["ship"]
        with tables.transaction():
            other = Document("ship", "another text")
            tables.update(ship.key, other, ship.source, ship.place, content_of(other))
        assert found(tables) == [content_of(other), *wanted("pole")]


def test_what_was_undone_or_is_in_another_file_is_not_returned(tmp_path: Path) -> None:
    with made(tmp_path / "index.sqlite") as tables, made(tmp_path / "other.sqlite") as other:
        with pytest.raises(RuntimeError), tables.transaction():
            put(tables, "pole")
            assert found(tables) == wanted("ice", "ship", "pole")
            raise RuntimeError
        assert found(tables) == wanted("ice", "ship")
        with other.transaction():
            put(other, "seal")
        assert found(other) == wanted("ice", "ship", "seal")
        assert found(tables) == wanted("ice", "ship")
        with pytest.raises(ValueError, match="read-only"):
            tables.contents()[0, 0] = 1


def test_threads_that_read_different_files_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Another thread may replace the cached totals between the moment they are stored and their use."""
    names = [f"{number}.sqlite" for number in range(4)]
    for name in names:
        with made(tmp_path / name) as tables, tables.transaction():
            put(tables, name)

    def read(name: str) -> list[list[str]]:
        with Tables(tmp_path / name) as tables:
            return [found(tables) for _ in range(300)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            for name, each in zip(names, pool.map(read, names), strict=True):
                assert each == [wanted("ice", "ship", name)] * 300
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("sql", ["DELETE FROM document_state", "INSERT INTO document_state VALUES (x'00')"])
def test_a_state_that_was_altered_is_damage(tmp_path: Path, sql: str) -> None:
    made(tmp_path / "index.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as db:
        db.execute(sql)
    with Tables(tmp_path / "index.sqlite") as tables, pytest.raises(IndexDamaged, match="state"):
        tables.contents()


def test_totals_are_those_of_the_documents(tmp_path: Path) -> None:
    """No matter whether they were read, remembered, or are those of a change that was undone."""
    with made(tmp_path / "index.sqlite") as tables:
        assert (tables.count(), tables.characters(), tables.count()) == (2, 7, 2)
        with pytest.raises(RuntimeError), tables.transaction():
            put(tables, "pole")
            assert (tables.count(), tables.characters()) == (3, 11)
            raise RuntimeError
        assert (tables.count(), tables.characters()) == (2, 7)
        with tables.transaction():
            tables.remove([tables.known(["ice"])["ice"].key])
            tables.set_totals(DocumentTotals(tables.content_bytes(), tables.fingerprint(), 4))
        assert (tables.count(), tables.characters()) == (1, 4)
