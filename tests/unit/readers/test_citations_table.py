"""`citations.tsv` beside a corpus: what the documents cite is in their metadata."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast import Settings
from ketrag_fast.building.sources import read_sources
from ketrag_fast.readers import SourceFile, find, reader_for
from ketrag_fast.types import Document, Failure

CORPUS = '{"_id": "1", "text": "one"}\n{"_id": "2", "text": "two", "metadata": {"cites": "doi:10.1000/x"}}\n'


def read(folder: Path, table: str | bytes, corpus: str = CORPUS) -> tuple[dict[str, object], list[Failure]]:
    (folder / "corpus.jsonl").write_text(corpus, "utf-8")
    data = table if isinstance(table, bytes) else table.encode()
    (folder / "citations.tsv").write_bytes(data)
    reader = reader_for(".jsonl")
    assert reader is not None
    items = list(reader(SourceFile(folder / "corpus.jsonl", "corpus.jsonl")))
    cites = {item.id: item.metadata.get("cites") for item in items if isinstance(item, Document)}
    return cites, [item for item in items if isinstance(item, Failure)]


def test_the_first_cites_the_second(tmp_path: Path) -> None:
    cites, failures = read(tmp_path, "a\tb\n1\t2\n1\tgone\n2\t1\n")
    assert cites == {"1": ["2", "gone"], "2": ["doi:10.1000/x", "1"]}
    assert failures == []
    assert read(tmp_path, "1\t2\n")[0]["1"] == ["2"]  # without a header
    assert read(tmp_path, "cited\tciting\n1\t2\n")[0] == {"1": None, "2": ["doi:10.1000/x", "1"]}
    assert read(tmp_path, "")[0] == {"1": None, "2": "doi:10.1000/x"}


def test_bad_lines_are_failures_and_the_rest_counts(tmp_path: Path) -> None:
    cites, failures = read(tmp_path, "a\tb\n1\n1\t2\t3\n\n1\t\n1\t2\n")
    assert cites["1"] == ["2"]
    assert [f.document for f in failures] == ["citations.tsv:2", "citations.tsv:3", "citations.tsv:5"]
    cites, failures = read(tmp_path, b"\0\1\2")
    assert cites == {"1": None, "2": "doi:10.1000/x"}
    assert "byte 0 is zero" in failures[0].message


def test_the_table_is_no_source_of_its_own(tmp_path: Path) -> None:
    read(tmp_path, "1\t2\n")
    assert [name for name, _ in find(str(tmp_path)).files] == ["corpus.jsonl"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "citations.tsv").write_text("text\nx\n")
    assert [name for name, _ in find(str(tmp_path)).files] == ["corpus.jsonl", "other/citations.tsv"]
    # Beside another file it is a table like any other.
    (tmp_path / "notes.jsonl").write_text(CORPUS)
    reader = reader_for(".jsonl")
    assert reader is not None
    items = list(reader(SourceFile(tmp_path / "notes.jsonl", "notes.jsonl")))
    assert all(
        "cites" not in item.metadata for item in items if isinstance(item, Document) and item.id == "1"
    )


def _linked(tmp_path: Path, name: str) -> Path:
    """A data set of which one file is a link to a secret outside."""
    outside, folder = tmp_path / "secret", tmp_path / "data"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(CORPUS, "utf-8")
    (folder / "queries.jsonl").write_text("", "utf-8")
    outside.write_text("1\t2\n" if name == "citations.tsv" else CORPUS, "utf-8")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    return folder


def test_a_table_that_is_a_link_out_of_the_source_is_not_read(tmp_path: Path) -> None:
    folder = _linked(tmp_path, "citations.tsv")
    items = list(read_sources(str(folder), Settings()))
    (failure,) = [item for item in items if isinstance(item, Failure)]
    assert failure.document == "citations.tsv"
    assert "--follow-links" in failure.message
    assert [item.metadata.get("cites") for item in items if isinstance(item, Document)] == [
        None,
        "doi:10.1000/x",
    ]
    followed = list(read_sources(str(folder), Settings(follow_links=True)))
    assert next(item.metadata["cites"] for item in followed if isinstance(item, Document)) == ["2"]


def test_a_corpus_that_is_a_link_out_of_the_source_is_not_read(tmp_path: Path) -> None:
    folder = _linked(tmp_path, "corpus.jsonl")
    (failure,) = read_sources(str(folder), Settings())
    assert isinstance(failure, Failure)
    assert "--follow-links" in failure.message
    assert len(list(read_sources(str(folder), Settings(follow_links=True)))) == 2
