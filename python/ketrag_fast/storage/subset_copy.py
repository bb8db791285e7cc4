"""Copy the tables of an index, restricted to some of its documents, to a new file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ketrag_fast.storage.checksum import fingerprint_of, hashes_of
from ketrag_fast.storage.database import connect
from ketrag_fast.storage.io_errors import tables_damaged, writing
from ketrag_fast.storage.source_table import seal_sources
from ketrag_fast.storage.tables import Tables

_SLICE: Final = 256
"""Rows between two checks."""
_KEPT: Final = ("vector_models", "vectors", "readers", "replies")
"""Tables of model results. Their keys are hashes of requests, so the copy includes rows of other documents;
the following build purges the rows that it does not request.
"""

_TEXTS: Final = (
    "SELECT content, CAST(text AS BLOB), key FROM documents LEFT JOIN texts ON document = key"
    " ORDER BY source, place"
)
_Checked = Callable[[Iterable[Any]], Iterator[Any]]


def copy_subset(
    source: Path, target: Path, wanted: Collection[str], check: Callable[[], object] = lambda: None
) -> str:
    """Copy the documents with these ids and all model results to `target`.

    Returns the fingerprint of all documents of `source` at that moment, as in a generation's manifest.
    `check` is called every few rows, and raises to stop.
    """
    ids = frozenset(wanted)

    def checked(rows: Iterable[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number % _SLICE == 0:
                check()
            yield row

    with Tables(source, read_only=True) as there, Tables(target) as made, writing(target):
        old, new = connect(source, None), made._db
        try:
            old.execute("BEGIN")
            with made.transaction():
                keys = _documents(old, new, ids, checked)
                rows = checked(old.execute("SELECT document, data FROM locators"))
                new.executemany(
                    "INSERT INTO locators VALUES (?, ?)",
                    ((keys[key], data) for key, data in rows if key in keys),
                )
                rows = checked(old.execute(_TEXTS))
                wanted_rows = (row for row in rows if row[2] in keys)
                new.executemany(
                    "INSERT INTO texts VALUES (?, CAST(? AS TEXT))",
                    _texts(there.texts.fill(wanted_rows, 0, 1), keys, source),
                )
                for name in _KEPT:
                    _table(old, new, name, checked)
            every = old.execute("SELECT content FROM documents ORDER BY source, place")
            return fingerprint_of(hashes_of((content for (content,) in checked(every)), source))
        finally:
            old.close()


def _documents(old: Any, new: Any, ids: frozenset[str], checked: _Checked) -> dict[int, int]:
    """Copy documents; return a map from old to new keys, renumbered so that gaps reveal nothing."""
    query = "SELECT key, id, source, content, title, metadata, chars FROM documents ORDER BY source, place"
    sources: dict[int, int] = {}
    keys: dict[int, int] = {}

    def rows() -> Iterator[tuple[Any, ...]]:
        for key, name, source, *payload in checked(old.execute(query)):
            if name in ids:
                keys[key] = len(keys) + 1
                own = sources.setdefault(source, len(sources) + 1)
                yield keys[key], name, own, len(keys), *payload

    new.execute("PRAGMA defer_foreign_keys = ON")
    new.executemany(
        "INSERT INTO documents (key, id, source, place, content, title, metadata, chars)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows(),
    )
    for number, kind, label, spec in old.execute("SELECT number, kind, label, spec FROM sources"):
        if number in sources:
            new.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", (sources[number], kind, label, spec))
    seal_sources(new)
    return keys


def _texts(rows: Iterable[Sequence[Any]], keys: Mapping[int, int], path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the keys and texts of the copy."""
    for _, text, key in rows:
        if text is None:
            raise tables_damaged(path, "the text of a document is in no generation")
        yield keys[key], text


def _table(old: Any, new: Any, name: str, checked: _Checked) -> None:
    """Copy a table with its schema, if it exists."""
    schema = old.execute(
        "SELECT type, sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL", (name,)
    ).fetchall()
    if not schema:
        return
    for kind, statement in sorted(schema, key=lambda row: row[0] != "table"):
        if kind in ("table", "index"):
            new.execute(statement)
    width = len(old.execute(f"PRAGMA table_info({name})").fetchall())
    marks = ", ".join("?" * width)
    rows = checked(old.execute(f"SELECT * FROM {name}"))  # noqa: S608 - ours
    new.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608 - ours
