"""Texts of merged indexes: published ones are not copied, but read from the parts."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.errors import Cancelled, IndexDamaged
from ketrag_fast.storage.checksum import HASH_BYTES
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.published_texts import PublishedTexts
from tests.support.faults import stop_at
from tests.support.merging import build, document

DOCUMENTS = [document(f"d{number}") for number in range(12)]


def parts_of(folder: Path) -> list[Path]:
    parts = [folder / "a", folder / "b"]
    for number, place in enumerate(parts):
        build(place, DOCUMENTS[number::2])
    return parts


def execute(index: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    db = sqlite3.connect(Layout(index).tables)
    try:
        found = db.execute(statement, values).fetchall()
        db.commit()
        return found
    finally:
        db.close()


def test_published_texts_are_not_copied(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    wanted = build(tmp_path / "whole", sorted(DOCUMENTS, key=lambda one: one.id))
    merged = tmp_path / "m"

    with pytest.raises(Cancelled):
        Index.merge(parts, merged, progress=stop_at("links"))
    assert execute(merged, "SELECT count(*) FROM documents") == [(12,)]
    assert execute(merged, "SELECT count(*) FROM texts") == [(0,)]
    with Index.merge(parts, merged) as index:
        assert index.digest == wanted
    for part in parts:
        execute(part, "DELETE FROM documents")
    with Index.build([], merged) as index:
        assert index.digest == wanted


def test_texts_that_are_in_the_tables_of_a_part_are_copied(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    wanted = build(tmp_path / "whole", sorted(DOCUMENTS, key=lambda one: one.id))
    key = execute(parts[0], "SELECT key FROM documents WHERE id = 'd4'")[0][0]
    execute(parts[0], "INSERT INTO texts VALUES (?, ?)", key, DOCUMENTS[4].text)
    with Index.merge(parts, tmp_path / "m") as index:
        assert index.digest == wanted
    execute(parts[0], "UPDATE texts SET text = 'altered'")
    with pytest.raises(IndexDamaged, match="'d4'"):
        Index.merge(parts, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("column", ["id", "title", "metadata"])
def test_a_part_with_an_altered_document_is_refused(tmp_path: Path, column: str) -> None:
    parts = parts_of(tmp_path)
    execute(parts[1], f"UPDATE documents SET {column} = 'altered' WHERE id = 'd3'")
    with pytest.raises(IndexDamaged, match=re.escape(str(Layout(parts[1]).tables))):
        Index.merge(parts, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_texts_of_several_indexes_are_found_by_their_hashes(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    contents = [
        content
        for part in parts
        for (content,) in execute(part, "SELECT content FROM documents ORDER BY place")
        if isinstance(content, bytes)
    ]
    texts = [one.text.encode() for one in [*DOCUMENTS[::2], *DOCUMENTS[1::2]]]
    unknown = [bytes(HASH_BYTES), contents[0][:8] + bytes(HASH_BYTES - 8)]
    found = PublishedTexts(Layout(parts[0]), [Layout(parts[1])]).find([*contents, *unknown])
    assert found == [*texts, None, None]
    assert PublishedTexts(Layout(parts[0])).find(contents) == [*texts[:6], *[None] * 6]
