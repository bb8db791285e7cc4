"""JSON lines that are read many at a time are those that are read one by one, errors included."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import Items, SourceFile, batches_of, items_of, jsonl, single
from ketrag_fast.readers.jsonl import read_jsonl, read_jsonl_batches
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import DocumentBatch
from tests.support.reading import read_all

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["_id", "id", "title", "text", "metadata", "other", "t\\u0065xt"])
RECORDS = st.dictionaries(NAMES, VALUES | st.text(min_size=1), max_size=6)
RAW = st.sampled_from(
    [
        b"",
        b"  \x0b",
        b"[]",
        b"{",
        b"\xff\xfe{}",
        b'\xef\xbb\xbf{"text": "marked"}',
        b'{"text": "caf\xe9"}',
        b'{"text": "a", "text": "b"}',
        b'{"text": "\\ud800"}',
        b'{"text": "\\ud83d\\ude00 \\/"}',
        b'{"text": "x\x00"}',
        b'{"text": "x", "n": NaN, "m": -Infinity}',
        b'{"text": "x", "n": 01}',
        b'{"text": "x", "_id": 12345678901234567890}',
        b'{"text": "x", "_id": -0}',
        b'{"text": "x", "_id": 1e5}',
        b'{"text": "x"} {}',
        b'{"text": "\x01"}',
        b'\t{ "text" : "x" , "_id" : "" }\r',
        b'{"text": "x", "metadata": {"b": 1, "a": "\xc3\xa9"}}',
        b'{"text": "\\u3000", "title": "\\u2003"}',
        b'{"text": "x", "n": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"text": "x", "n": ' + b"7" * 5000 + b"}",
    ]
)
LINES = st.lists(RAW | RECORDS.map(lambda record: json.dumps(record).encode()), max_size=12)


def until_error(items: Iterator[Items]) -> list[Items | str]:
    """Return the items, and the message of the error that ends them."""
    found: list[Items | str] = []
    try:
        found.extend(items)
    except DocumentError as error:
        found.append(str(error))
    return found


def both(data: bytes) -> tuple[list[Items | str], list[Items | str]]:
    """Return what is read of a file one by one and in batches."""
    file = SourceFile(Path("a.jsonl"), "a.jsonl", data=data)
    batches = until_error(read_jsonl_batches(file))
    for batch in batches:
        if isinstance(batch, DocumentBatch):
            assert batch.contents == [bytes.fromhex(content_of(one)) for one in batch.documents()]
            columns = {"id": batch.ids, "title": batch.titles, "text": batch.texts}
            for name, values in columns.items():
                blob, ends = batch.packed[name]
                assert blob.tobytes() == "".join(values).encode()
                assert ends.tolist() == [0, *accumulate(len(value.encode()) for value in values)]
    together = [
        one for each in batches for one in (each.documents() if isinstance(each, DocumentBatch) else (each,))
    ]
    return until_error(read_jsonl(file)), together


@settings(max_examples=100, deadline=None)
@given(LINES, st.sampled_from([1, 40, 1 << 18]), st.sampled_from([b"\n", b"\r\n"]))
@example([], 1, b"\n")
def test_both_ways_give_the_same(lines: list[bytes], block: int, end: bytes) -> None:
    before = jsonl._BLOCK
    jsonl._BLOCK = block  # type: ignore[misc]
    try:
        one_by_one, together = both(end.join(lines))
    finally:
        jsonl._BLOCK = before  # type: ignore[misc]
    assert together == one_by_one


def test_ordinary_lines_come_in_batches_around_the_others() -> None:
    lines = [json.dumps({"_id": n, "title": f"T{n}", "text": f"text {n} é"}) for n in range(9)]
    lines[4] = "broken"
    file = SourceFile(Path("a.jsonl"), "a.jsonl", data="\n".join(lines).encode())
    found = list(batches_of(file, "jsonl"))
    assert [len(one) if isinstance(one, DocumentBatch) else 0 for one in found] == [4, 0, 4]
    assert list(single(found)) == list(items_of(file, "jsonl"))
    assert next(iter(single(found))) == Document("0", "text 0 é", "T0", {})


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", '{"text": "x"}'.encode("utf-16")])
def test_empty_files_and_other_encodings(data: bytes) -> None:
    one_by_one, together = both(data)
    assert together == one_by_one and len(together) == 1


def test_text_beyond_the_limit_ends_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\n".join(json.dumps({"text": "x" * 100}) for _ in range(60))
    file = SourceFile(Path("a.jsonl"), "a.jsonl", data=lines.encode())
    monkeypatch.setattr("ketrag_fast.readers.MILLION", 1)
    monkeypatch.setattr("ketrag_fast.readers._TIMES", 0)
    found = list(items_of(file, "jsonl", None, 1_000))
    assert len(found) == 9 and "more than 1,000 characters" in str(found[-1])


def test_a_table_of_citations_is_added(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "p", "text": "x"}\n{"_id": "q", "text": "y"}\n')
    (tmp_path / "citations.tsv").write_text("p\tq\n")
    found = list(single(batches_of(SourceFile(tmp_path / "corpus.jsonl", "corpus.jsonl"), "jsonl")))
    assert isinstance(found[0], Document) and found[0].metadata == {"cites": ["q"]}


@pytest.mark.parametrize("block", [1, 64, 1 << 18])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_too_long_to_read_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, end: str
) -> None:
    """Wherever it is, also as the last line without an end."""
    monkeypatch.setattr(jsonl, "_BLOCK", block)
    monkeypatch.setattr(jsonl, "_longest_line", lambda: 500_000)
    path = tmp_path / "rows.jsonl"
    long = json.dumps({"_id": "long", "text": "word " * 200_000})
    for at in range(4):
        rows = [json.dumps({"_id": f"d{number}", "text": f"Text {number}."}) for number in range(3)]
        rows.insert(at, long)
        path.write_text("\n".join(rows) + end)
        items = list(items_of(SourceFile(path, "rows.jsonl"), "jsonl"))
        assert [item.id for item in items if isinstance(item, Document)] == ["d0", "d1", "d2"]
        (failure,) = (item for item in items if isinstance(item, Failure))
        assert failure.document == f"rows.jsonl:{at + 1}"
        assert "500,000 bytes" in failure.message and "read_memory" in failure.message


def test_the_longest_line_is_bound_by_the_memory_of_the_process() -> None:
    resource = pytest.importorskip("resource")
    bound = resource.getrlimit(resource.RLIMIT_AS)[0]
    wanted = sys.maxsize if bound == resource.RLIM_INFINITY else bound // 8
    assert jsonl._longest_line() == wanted


def test_short_values_of_other_fields_are_metadata() -> None:
    record = {
        "id": "x",
        "text": "Price",
        "part": "007",
        "year": 1994,
        "ratio": 0.5,
        "sold": True,
        "none": None,
        "tags": ["ice", "ship"],
        "vector": [0.1] * 384,
        "body": "long " * 100,
        "inner": {"a": 1},
        "metadata": {"year": 2001, "own": "yes"},
    }
    lines = json.dumps(record) + '\n{"text": "plain"}\n' + '{"text": "x", "n": NaN, "m": "\\ud800", "k": 1}\n'
    for name, data in (("a.jsonl", lines), ("a.json", json.dumps([record, {"text": "plain"}]))):
        documents, notices = read_all(name, data.encode())
        assert documents[0].metadata == {
            "part": "007",
            "year": 2001,
            "ratio": 0.5,
            "sold": True,
            "tags": ["ice", "ship"],
            "own": "yes",
        }
        assert documents[1].metadata == {}
        more = ", n, m" if name == "a.jsonl" else ""
        assert notices == [
            f"{name}: fields that are too long or too many for metadata: vector, body, inner{more}"
        ]
    assert read_all("a.jsonl", lines.encode())[0][2].metadata == {"k": 1}
