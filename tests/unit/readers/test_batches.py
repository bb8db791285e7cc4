"""Documents of reader processes come in batches: the documents, and the index, are those read one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import InputError
from ketrag_fast.readers import Items, SourceFile, batches, items_of, sandbox, single
from ketrag_fast.readers.batches import Batches, batch_of, row_of
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.storage.checksum import content_of, metadata_json
from ketrag_fast.types import Document
from ketrag_fast.types.documents import DocumentBatch
from ketrag_fast.types.locations import Locator, to_text
from tests.support.office_files import text_row, xlsx

IN_USE = "the id 'x' is already in use; the first document with it is kept"
PLAIN = [
    Document("a", "One text.", "Title", {"year": 1893, "ship": "Fram ☃"}),
    Document("b", "Another 😀 text.", "", {}, (Locator(0, 7, "page", 2), Locator(0, 3, "heading", ["é"]))),
    Document("c", " x", "t" * 300),
]


def test_a_batch_has_the_documents_and_their_hashes() -> None:
    batch = batch_of([row_of(document) for document in PLAIN])
    assert batch is not None
    assert list(batch.documents()) == [
        PLAIN[0],
        Document("b", PLAIN[1].text, "", {}, tuple(sorted(PLAIN[1].locators, key=lambda one: -one.end))),
        PLAIN[2],
    ]
    assert [content.hex() for content in batch.contents] == list(map(content_of, PLAIN))
    assert batch.metadata == list(map(metadata_json, PLAIN))
    assert batch.locators == [to_text(document.locators) for document in PLAIN]
    blob, ends = batch.packed["text"]
    assert blob.tobytes()[ends[1] : ends[2]].decode() == PLAIN[1].text
    assert set(batch.packed) == {"id", "title", "text", "metadata"}
    part = batch.part(1, 3)
    assert list(part.documents()) == list(batch.documents())[1:]
    assert part.contents == batch.contents[1:]


def test_without_metadata_there_is_no_column() -> None:
    batch = batch_of([row_of(Document(name, "text")) for name in "ab"])
    assert batch is not None
    assert set(batch.packed) == {"id", "title", "text"}


@pytest.mark.parametrize(
    "odd",
    [
        Document("", "no id"),
        Document("a", " \n\x1f", "title"),
        Document("a", "text", "t" * 301),
        Document("a", "a\0b"),
        Document("a", "half of a character: \ud83d"),
        Document("a", "short", "", {}, (Locator(0, 6, "page", 1),)),
    ],
)
def test_documents_that_are_changed_or_refused_come_alone(odd: Document) -> None:
    made: list[Items] = []
    rows = Batches(made.append)
    for document in (PLAIN[0], odd, PLAIN[2]):
        rows.add(row_of(document))
    rows.flush()
    assert made == [PLAIN[0], odd, PLAIN[2]]


@pytest.mark.parametrize(
    "bad", [[], ["a", "b", "c", "{}"], ["a", "b", "c", {}, ""], ["a", "b", None, "{}", ""]]
)
def test_what_is_no_row_is_refused(bad: list[Any]) -> None:
    with pytest.raises(ValueError, match="not the row"):
        Batches(lambda _: None).add(bad)


@pytest.mark.parametrize("metadata", ["", "{", "1", "[]"])
def test_metadata_that_are_no_object_are_refused(metadata: str) -> None:
    made: list[Items] = []
    rows = Batches(made.append)
    rows.add(["a", "text", "", metadata, ""])
    rows.add(["b", "text", "", "{}", ""])
    with pytest.raises(ValueError):
        rows.flush()
    assert not made


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(InputError, match="equal length"):
        batches._core.pack_documents(["a"], [], ["c"], ["{}"], [""])


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 3)
    monkeypatch.setattr(batches, "_CHARACTERS", 100)
    made: list[Items] = []
    rows = Batches(made.append)
    texts = [*"abcde", "f" * 100, "g", "h" * 99, "i"]
    for text in texts:
        rows.add(row_of(Document(text[0], text)))
    rows.flush()
    sizes = [len(one) if isinstance(one, DocumentBatch) else 1 for one in made]
    assert sizes == [3, 3, 2, 1]
    assert [one.text for one in single(made)] == texts


def test_an_index_does_not_depend_on_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    rows = [text_row(1, "ship", "year"), *(text_row(n, f"Fram {n}", f"{1890 + n}") for n in range(2, 700))]
    (source / "a.xlsx").write_bytes(xlsx({"S": rows}))
    (source / "b.csv").write_text(
        "text,year\n" + "".join(f"The ship sailed on {n},{n}\n" for n in range(9_000))
    )
    (source / "c.csv").write_text("_id,text\n" + "x,The same id twice and again\n" * 9_000)
    kind, file = "table", SourceFile(source / "b.csv", "b.csv")
    with Apart(1, 60, 800, 10**9) as apart:
        (read,) = [list(items) for _, items in apart.read([(file, kind)])]
    assert any(isinstance(one, DocumentBatch) for one in read)
    assert list(single(read)) == list(items_of(file, kind))
    digests = []
    for name in ("batches", "singly"):
        index = Index.build(str(source), path=tmp_path / name, settings=Settings())
        assert index.report is not None
        assert [one.message for one in index.report.failures] == [IN_USE] * 8_999
        digests.append(index.digest)
        assert index.search("sailed 77", filter="year=77", mode="bm25")[0].document == "b.csv#79"
        monkeypatch.setattr(sandbox.Batches, "flush", flush_singly)
    assert digests[0] == digests[1]


def flush_singly(rows: Batches) -> None:
    kept, rows._rows, rows._characters = rows._rows, [], 0
    for row in kept:
        rows._put(batches._document(row))
