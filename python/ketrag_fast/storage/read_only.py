"""Read-only access to the tables of an index: no locks, no new files.

Tables that do not exist yet, because no build needed them, count as empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.database import require_own_file
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import LEFT_OUT


def failures(layout: Layout) -> list[Failure]:
    """Return the documents and chunks that failed in the last build."""
    return [one for one in _failures(layout) if one.code not in LEFT_OUT]


def left_out(layout: Layout) -> list[Failure]:
    """Return the files and parts that the last reading of the sources left out, with the reasons."""
    return [one for one in _failures(layout) if one.code in LEFT_OUT]


def _failures(layout: Layout) -> list[Failure]:
    rows = _rows(layout, "SELECT document, code, message FROM failures ORDER BY rowid")
    return [Failure(*row) for row in rows]


def readings(layout: Layout, key: str) -> dict[str, float]:
    """Return the total usage of a reader (LLM and prompt) in this index over all builds.

    `calls`, tokens, seconds, and the chunks that a later build did not request again (`cache_hits`).
    """
    names = ("calls", "tokens_in", "tokens_out", "tokens_shared", "seconds", "cache_hits")
    query = (
        "SELECT count(replies.chunk), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0),"
        " coalesce(sum(tokens_shared), 0), coalesce(sum(seconds), 0.0), hits"
        " FROM readers LEFT JOIN replies ON reader = number WHERE key = ? GROUP BY number"
    )
    found = _rows(layout, query, key)
    return dict(zip(names, found[0] if found else (0, 0, 0, 0, 0.0, 0), strict=True))


def contents(layout: Layout) -> frozenset[str]:
    """Return the content hashes of the documents in the index."""
    return frozenset(str(row[0]) for row in _rows(layout, "SELECT lower(hex(content)) FROM documents"))


def runs(layout: Layout, most: int) -> list[tuple[str, float, int, str]]:
    """Return start, seconds, generation and report (JSON) of the latest builds, newest first.

    Builds that changed nothing and had no failures are not stored.
    """
    query = "SELECT started, seconds, generation, report FROM runs ORDER BY number DESC LIMIT ?"
    return [(str(a), float(b), int(c), str(d)) for a, b, c, d in _rows(layout, query, most)]


def examples(layout: Layout) -> list[str]:
    """Return the example questions of the index."""
    return [str(row[0]) for row in _rows(layout, "SELECT question FROM examples ORDER BY number")]


def keep_examples(layout: Layout, questions: Sequence[str]) -> None:
    """Replace the example questions. The caller holds the builder's lock."""
    require_own_file(layout.tables)
    with writing(layout.tables), closing(sqlite3.connect(layout.tables)) as db, db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS examples (number INTEGER PRIMARY KEY, question TEXT NOT NULL) STRICT"
        )
        db.execute("DELETE FROM examples")
        db.executemany("INSERT INTO examples (question) VALUES (?)", ((text,) for text in questions))


def keep_description(layout: Layout, path: str, text: str | None) -> None:
    """Replace the description of a folder, or remove it. The caller holds the builder's lock."""
    require_own_file(layout.tables)
    with writing(layout.tables), closing(sqlite3.connect(layout.tables)) as db, db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS descriptions (path TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT"
        )
        db.execute("DELETE FROM descriptions WHERE path = ?", (path,))
        if text is not None:
            db.execute("INSERT INTO descriptions VALUES (?, ?)", (path, text))


def _rows(layout: Layout, query: str, *values: str | int) -> list[tuple[Any, ...]]:
    tables = layout.tables
    if not tables.is_file():
        return []
    uri = tables.absolute().as_uri()
    for mode in ("mode=ro", "mode=ro&immutable=1"):  # reading a log needs a writable folder
        try:
            with closing(sqlite3.connect(f"{uri}?{mode}", uri=True)) as db:
                return db.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
        except sqlite3.DatabaseError as error:
            raise IndexDamaged(f"{tables} is damaged: {error}", hint="index the sources again") from error
    return []
