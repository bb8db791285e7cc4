"""`ketrag doctor` compares every byte: a flipped bit in any file of an index is reported with that file."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.index.health import Finding, examine
from tests import small_model

WITHOUT_DATA = {".gitignore", "index.id", "index.lock", "index.owner"}
UNCHECKED = {"document_state", "sqlite_schema"}
"""A random token, which only says whether documents have changed, and comments in declarations of tables."""
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with rows in every table that builds without an LLM fill, and arrays of vectors."""
    folder, path = tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("ix") / "index"
    (folder / "sub").mkdir()
    (folder / "a.md").write_text("# Ships\n\nNansen built the Fram.\n\n## South\n\nAmundsen sailed it.\n")
    (folder / "sub" / "b.txt").write_text("Amundsen sailed the Maud eastwards.")
    (folder / "d.csv").write_text("id,text,year\n1,The Gjoa passed,1905\n2,The Belgica wintered,1898\n")
    (folder / "e.xyz").write_bytes(b"\0\1\2")
    model = small_model.save(tmp_path_factory.mktemp("model"), small_model.config())
    settings = Settings(threads=1, llm="none", embedder=f"native:{model}", modes="bm25,text")
    with Index.build(folder, path, settings=settings) as built:
        built.update(remove=["sub/b.txt"])
    with closing(sqlite3.connect(path / "index.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def rows_of(tables: Path) -> Rows | None:
    """All rows; None if SQLite cannot read them."""
    try:
        with closing(sqlite3.connect(f"{tables.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.text_factory = bytes
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            rows = {
                name.decode(): db.execute(f'SELECT * FROM "{name.decode()}"').fetchall() for name in names
            }
            rows["sqlite_schema"] = db.execute("SELECT * FROM sqlite_schema").fetchall()
            # A copy of the token in `document_state`: if they differ, a build has not been published yet.
            rows["settings"] = [row for row in rows["settings"] if row[0] != b":published"]
            return rows
    except sqlite3.Error:
        return None


def damage(index: Path) -> list[Finding]:
    return [one for one in examine(index) if one.error is not None]


def flipped(path: Path, places: list[int], seed: int) -> Iterator[int]:
    """Flip a bit at each of some places in turn, and put it back."""
    data, drawn = path.read_bytes(), random.Random(seed)
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << drawn.randrange(8)
        path.write_bytes(changed)
        yield place
    path.write_bytes(data)


def test_every_file_of_a_generation(index: Path) -> None:
    assert not damage(index)
    drawn, kinds = random.Random(1), set()
    for path in sorted(index.rglob("*")):
        if path.is_file() and path.name not in {"index.sqlite", *WITHOUT_DATA}:
            kinds.add(path.suffix)
            size = path.stat().st_size
            for place in flipped(path, drawn.sample(range(size), min(size, 2)), seed=size):
                found = damage(index)
                assert any(path == one.path or path.is_relative_to(one.path) for one in found), (path, place)
    assert {".npy", ".json", ""} <= kinds and not damage(index)


def cells(rows: Rows, data: bytes) -> Iterator[tuple[str, int]]:
    """A place in each stored text of each table."""
    drawn = random.Random(2)
    for table in sorted(rows.keys() - UNCHECKED):
        for value in (value for row in rows[table] for value in row if isinstance(value, bytes)):
            at = data.find(value) if len(value) > 3 else -1
            if at >= 0:
                yield table, at + drawn.randrange(len(value))


def test_every_row_of_the_tables(index: Path) -> None:
    tables = index / "index.sqlite"
    whole, data = rows_of(tables), tables.read_bytes()
    assert whole is not None
    known = list(cells(whole, data))
    assert {table for table, _ in known} >= {"documents", "files", "sources", "settings", "vectors"}
    drawn = random.Random(3).sample(range(len(data)), 150)
    for place in flipped(tables, [*(at for _, at in known), *drawn], seed=4):
        if damage(index):
            continue
        rows = rows_of(tables)
        assert rows is not None, place
        changed = {table for table in whole if rows.get(table) != whole[table]}
        assert changed <= UNCHECKED, (changed, place)


def test_altered_rows_of_files_are_reported_and_read_again(index: Path) -> None:
    """In each column; a build loses no document by it, and one that checks all files repairs the row."""
    folder = next(Path(spec) for spec in _column(index, "SELECT spec FROM sources"))
    with Index.open(index) as opened:
        digest = opened.digest
    changes = {
        "place": "place + 1",
        "path": "x'2f61'",
        "stat": "zeroblob(32)",
        "digest": "zeroblob(32) || substr(digest, 33)",
        "reader": "reader + 1",
        "documents": "documents + 1",
        "notes": """'[["a", "b", "c"]]'""",
        "file": "'a.mD'",
    }
    for column, value in changes.items():
        with closing(sqlite3.connect(index / "index.sqlite")) as db, db:
            done = db.execute(
                f"UPDATE files SET {column} = CAST({value} AS {_type(column)}) WHERE file = 'a.md'"
            )
            assert done.rowcount == 1
        (found,) = damage(index)
        assert "altered" in str(found.error) and found.error is not None and found.error.hint, column
        with Index.build(folder, index) as again:  # which compares times, so most rows are not needed
            assert again.digest == digest, column
        with Index.build(folder, index, check=True) as again:
            assert again.digest == digest, column
        assert not damage(index), column


def _type(column: str) -> str:
    types = {"path": "BLOB", "stat": "BLOB", "digest": "BLOB", "notes": "TEXT", "file": "TEXT"}
    return types.get(column, "INTEGER")


def _column(index: Path, query: str) -> list[str]:
    with closing(sqlite3.connect(index / "index.sqlite")) as db:
        return [value for (value,) in db.execute(query)]
