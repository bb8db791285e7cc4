"""Whatever bytes a file holds, reading ends with documents or named failures, never with an exception."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Meter
from ketrag_fast.building.ingest import Change, apply_change
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import decode
from ketrag_fast.storage.tables import Tables

# Of those that are read in this process; what is read apart is fuzzed in tests/unit/readers.
SUFFIXES = (".csv", ".jsonl", ".md", ".rst", ".tsv", ".txt")
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
PIECES = st.sampled_from(
    [
        b'{"_id":',
        b'"a"',
        b',"text":',
        b"}",
        b"{",
        b"\n",
        b"\r",
        b",",
        b'"',
        b";",
        b"---\n",
        b"title:",
        b"#",
        b"=",
        b"\xff",
    ]
)
BYTES = st.one_of(st.binary(max_size=300), TEXTS.map(str.encode), st.lists(PIECES, max_size=40).map(b"".join))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("anything")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=BYTES, suffix=st.sampled_from(SUFFIXES))
def test_any_bytes_in_any_format(folder: Path, data: bytes, suffix: str) -> None:
    path = folder / f"file{suffix}"
    path.write_bytes(data)
    other = folder / "other.txt"  # an index without any document is refused
    other.write_text("Another document.")
    with Tables(folder / "t.sqlite") as tables:
        done = apply_change(
            tables, Change([str(path), str(other)], others="drop"), Settings(), Meter("read", None)
        )
        documents = list(tables.documents())
    assert done.documents == len(documents)
    assert len({document.id for document in documents}) == len(documents)
    for document in documents:
        assert document.text.strip() or document.title.strip()
    if suffix not in (".jsonl", ".ndjson", ".csv", ".tsv"):
        assert len(documents) + len(done.failures) == 2


@given(TEXTS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_text_comes_back_as_it_was(text: str, encoding: str) -> None:
    text = text.removeprefix("\ufeff")
    if encoding == "utf-8" and text.encode().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    assert decode(text.encode(encoding), "cp1252").text == text


@given(st.binary(max_size=400))
def test_decoding_gives_text_or_says_why_not(data: bytes) -> None:
    try:
        text = decode(data, "cp1252").text
    except DocumentError as error:
        assert str(error)
    else:
        assert (
            "\0" not in text
            or data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            or data[:4] == codecs.BOM_UTF32_BE
        )


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=8))
def test_json_lines_round_trip(folder: Path, rows: list[tuple[str, str, str]]) -> None:
    path = folder / "rows.jsonl"
    lines = [json.dumps({"_id": f"{n}{i}", "title": t, "text": x}) for n, (i, t, x) in enumerate(rows)]
    path.write_text("\n".join(lines), "utf-8")
    with Tables(folder / "u.sqlite") as tables:
        apply_change(tables, Change(str(path), others="drop"), Settings(), Meter("read", None))
        found = [(document.id, document.title, document.text) for document in tables.documents()]
    # A title alone becomes the text.
    told = [(f"{n}{i}", *((t, x) if x.strip() else ("", t))) for n, (i, t, x) in enumerate(rows)]
    assert found == [row for row in told if row[2].strip()]
