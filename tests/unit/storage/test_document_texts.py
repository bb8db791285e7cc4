"""Texts of documents: in the tables until they are published, then once, in the generation."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.building import delta
from ketrag_fast.errors import Cancelled, IndexDamaged
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.published_texts import PublishedTexts
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types.locations import Locator

WORDS = ("Nansen", "drifted", "towards", "the", "pole", "in", "1895", "é")


def articles(count: int, first: int = 0) -> list[Document]:
    """Return documents of some sentences, each with a word of its own."""
    return [
        Document(
            f"d{n}", f"  Word{n} came.\n\n" + " ".join(WORDS[(n + k) % 8] for k in range(40)) + ". ", f"T{n}"
        )
        for n in range(first, first + count)
    ]


def kept_texts(path: Path) -> int:
    with closing(sqlite3.connect(path / "index.sqlite")) as db:
        return int(db.execute("SELECT count(*) FROM texts").fetchone()[0])


def stored(path: Path) -> list[Document]:
    with Tables(path / "index.sqlite", read_only=True) as tables:
        return list(tables.documents())


def test_a_published_text_is_not_in_the_tables(tmp_path: Path) -> None:
    documents, path = articles(600), tmp_path / "index"
    Index.build(documents, path).close()
    assert kept_texts(path) == 0
    assert b"Word7 came" not in (path / "index.sqlite").read_bytes()
    assert stored(path) == documents
    with Tables(path / "index.sqlite", read_only=True) as tables:
        assert not tables.texts.all_here() and not tables.altered()
        assert list(tables.column("text")) == [one.text.encode() for one in documents]
        assert [one.columns["text"] for one in tables.some([599, 3])] == [
            documents[599].text.encode(),
            documents[3].text.encode(),
        ]


@pytest.mark.parametrize(
    "settings",
    [{}, {"cut": "windows", "chunk_tokens": 30, "overlap": 12}, {"split_level": 2, "cut": "windows"}],
)
def test_any_cut_and_sections_give_the_documents_back(tmp_path: Path, settings: dict[str, object]) -> None:
    text = "".join(f"Heading {n}\n" + "A sentence of the part. " * 30 for n in range(4))
    marks = [Locator(text.index(f"Heading {n}"), len(text), "heading", [f"Heading {n}"]) for n in range(4)]
    documents = [
        *articles(3),
        Document("long", text, "Long", {}, tuple(marks)),
        Document("thin", " \n x \n ", ""),
    ]
    path = tmp_path / "index"
    Index.build(documents, path, settings=Settings(**settings)).close()
    assert kept_texts(path) == 0
    assert stored(path) == documents
    Index.build([*documents, *articles(2, 7)], path, settings=Settings(**settings)).close()
    assert stored(path) == [*documents, *articles(2, 7)]


def test_a_build_that_stops_keeps_the_texts_in_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "index"
    Index.build(articles(5), path).close()

    with pytest.raises(Cancelled):
        Index.build(articles(5, 3), path, progress=lambda event: event.stage != "units")
    assert kept_texts(path) == 5 - 2
    assert stored(path) == articles(8)
    Index.build([], path).close()
    assert kept_texts(path) == 0
    assert stored(path) == articles(8)


def test_a_damaged_block_loses_only_its_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "LEAST", 1 << 30)  # a delta reads no text that stays
    words = np.random.default_rng(1).integers(0, 1 << 40, (900, 60))
    documents = [Document(f"d{n}", " ".join(map(hex, row.tolist()))) for n, row in enumerate(words)]
    path = tmp_path / "index"
    Index.build(documents, path).close()
    file = path / "gen-000001" / "units" / "unit_texts_blob.pack"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    found = PublishedTexts(Layout(path)).find([bytes.fromhex(content_of(one)) for one in documents])
    assert found[:500] == [one.text.encode() for one in documents[:500]]
    lost = [one.id for one, text in zip(documents, found, strict=True) if text is None]
    assert lost and lost[-1] == "d899"
    with pytest.raises(IndexDamaged, match=lost[0]):
        Index.build([Document("new", "New.")], path)
    again = [one for one in documents if one.id in lost]
    with Index.build(again, path) as index:  # what is lost is passed again
        assert len(index.inspect.documents()) == 901
    assert stored(path)[:900] == documents


def test_files_are_read_again_if_their_published_texts_are_damaged(tmp_path: Path) -> None:
    source, path = tmp_path / "source", tmp_path / "index"
    source.mkdir()
    for one in articles(40):
        (source / f"{one.id}.txt").write_text(one.text)
    with Index.build(source, path) as index:
        digest = index.digest
    for file in (path / "gen-000001" / "units").glob("unit_texts_blob.*"):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    with Index.build([], path) as index:
        assert index.digest == digest
    assert kept_texts(path) == 0


@given(
    st.lists(st.text("ab é\n", max_size=30), max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 30)), max_size=12),
)
@settings(deadline=None)
def test_pieces_and_gaps_make_texts(texts: Sequence[str], cuts: Sequence[tuple[int, int, int]]) -> None:
    pieces = []
    for owner, a, b in cuts:
        if owner < len(texts):
            start, end = sorted((min(a, len(texts[owner])), min(b, len(texts[owner]))))
            pieces.append((owner, len(texts[owner][:start].encode()), len(texts[owner][:end].encode())))
    owners = np.array([owner for owner, _, _ in pieces], np.uint32)
    spans = np.array([span[1:] for span in pieces], np.uint32).reshape(-1, 2)
    whole = pack(list(texts))
    gaps = _core.string_gaps(whole, owners, spans)
    restored = _core.restore_strings(_core.slice_strings(whole, owners, spans), owners, spans, gaps)
    assert unpack(*restored) == list(texts)
