"""Unchanged documents are compared with the published arrays instead of hashing their texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.published_texts import _UnitTexts
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types.locations import Locator
from tests.support.faults import run_sql

PLAIN = [Document(f"d{n}", f"Nansen wrote page {n}.", f"Page {n}") for n in range(6)]
DATED = [Document(f"d{n}", f"Nansen wrote page {n}.", f"Page {n}", {"year": 1890 + n}) for n in range(6)]


def as_published(path: Path, rows: Sequence[int] = range(6)) -> bool:
    units = open_current(Layout(path)).stages["units"]
    with Tables(path / "index.sqlite", read_only=True) as tables:
        return tables.are_as_published(units, np.array(rows, np.int64))


def build(documents: Sequence[Document], path: Path) -> Path:
    Index.build(documents, path, settings=Settings(modes="bm25")).close()
    return path


@pytest.mark.parametrize("documents", [PLAIN, DATED], ids=["plain", "dated"])
@pytest.mark.parametrize("column", ["id", "title", "metadata"])
def test_an_altered_column_is_found(documents: list[Document], column: str, tmp_path: Path) -> None:
    path = build(documents, tmp_path / "index")
    assert as_published(path)
    run_sql(path, f"UPDATE documents SET {column} = '{{\"year\": 1}}' WHERE id = 'd3'")
    assert not as_published(path)
    assert as_published(path, [0, 1, 2, -1, 4, 5])  # a changed document is verified when it is read


def test_values_that_move_between_rows_are_found(tmp_path: Path) -> None:
    path = build(PLAIN, tmp_path / "index")
    run_sql(path, "UPDATE documents SET title = 'Page' WHERE id = 'd2'")
    run_sql(path, "UPDATE documents SET title = ' 2Page 3' WHERE id = 'd3'")
    assert not as_published(path)


def test_a_text_in_the_tables_is_verified_by_its_hash(tmp_path: Path) -> None:
    path = build(PLAIN, tmp_path / "index")
    run_sql(path, "INSERT INTO texts SELECT key, 'Nansen wrote page 3.' FROM documents WHERE id = 'd3'")
    assert as_published(path)
    run_sql(path, "UPDATE texts SET text = 'Nobody wrote page 3.'")
    with pytest.raises(IndexDamaged, match="d3"):
        as_published(path)


def test_sections_and_locators_need_the_texts(tmp_path: Path) -> None:
    marks = (Locator(0, 10, "heading", ["One"]), Locator(10, 22, "heading", ["Two"]))
    path = build([*PLAIN[:5], Document("d5", "Nansen in the ice now.", "Page 5", {}, marks)], tmp_path / "i")
    assert not as_published(path)


def test_hashes_that_share_a_prefix_are_told_apart(tmp_path: Path) -> None:
    """Hashes are searched by their first eight bytes."""
    units = dict(open_current(Layout(build(PLAIN, tmp_path / "index"))).stages["units"])
    hashes = units["document_hashes"].copy()
    hashes[1:5, :8] = hashes[3, :8]
    texts = _UnitTexts({**units, "document_hashes": hashes})  # type: ignore[arg-type]
    stored = [row.tobytes() for row in hashes]
    unknown = [stored[3][:8] + bytes(len(stored[3]) - 8), bytes(len(stored[3])), stored[5][:-1] + b"?"]
    assert texts._numbers([*stored, *unknown]) == [*range(6), None, None, None]


@pytest.mark.parametrize("is_lent", [True, False])
def test_documents_are_read_in_every_way(tmp_path: Path, *, is_lent: bool) -> None:
    """Texts that are published are not in the tables."""
    path = build(DATED, tmp_path / "index")
    if not is_lent:
        for one in DATED:
            run_sql(path, f"INSERT INTO texts SELECT key, '{one.text}' FROM documents WHERE id = '{one.id}'")
    with Tables(path / "index.sqlite", read_only=True) as tables:
        assert tables.texts.all_here() is not is_lent
        whole = [
            {
                "id": one.id.encode(),
                "title": one.title.encode(),
                "text": one.text.encode(),
                "metadata": f'{{"year":{1890 + n}}}'.encode(),
            }
            for n, one in enumerate(DATED)
        ]
        assert list(tables.documents()) == DATED
        assert [one.columns for one in tables.stored(["d4", "d1", "none"])] == [whole[4], whole[1]]
        assert [one.columns for one in tables.some([3, 0])] == [whole[3], whole[0]]
        assert tables.ids_at([5, 0]) == ["d5", "d0"] and tables.ids_at(range(6)) == [one.id for one in DATED]
        for size, lengths in ((1, [1] * 6), (82, [2] * 3), (83, [3] * 2), (1 << 20, [6])):
            blocks = list(tables.blocks(size))
            assert [len(block) for block in blocks] == lengths
            assert [one.columns for block in blocks for one in block] == whole
