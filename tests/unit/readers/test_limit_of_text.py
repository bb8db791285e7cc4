"""What one file may give is bounded: a small one that repeats itself fills neither disk nor memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Settings
from ketrag_fast.building.sources import read_sources
from ketrag_fast.readers import FORMATS, SourceFile, characters_of, items_of, single
from ketrag_fast.readers.code import symbols
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.types import Document, Failure
from tests.support.effort import processor_seconds
from tests.support.office_files import archive, mail, text_row, xlsx
from tests.support.reading import read_one

HEADER = "a" * 100_000
ROWS = 300


def repeating_table() -> bytes:
    """Names of columns are cut, so that it takes many columns."""
    names = ",".join(f"{'a' * 190}{n}" for n in range(300))
    return f"{names}\n".encode() + (b"x," * 300 + b"\n") * ROWS


def repeating_sheet() -> bytes:
    names = [f"{'a' * 190}{n}" for n in range(26)]
    return xlsx({"s": [text_row(1, *names), *(text_row(n, *"x" * 26) for n in range(2, 2 * ROWS))]})


FILES = {
    "a.xlsx": repeating_sheet(),
    "a.csv": repeating_table(),
    "a.zip": archive({f"{n}.csv": repeating_table() for n in range(2)}),
    "a.eml": mail("Two tables.", attached={"b.csv": repeating_table(), "c.xlsx": repeating_sheet()}),
}
LONG_NAMES = {
    "a.json": json.dumps({"k" * 100_000: [{"a": "x"} for _ in range(ROWS)]}).encode(),
    "a.xml": f"<{HEADER}>{'<b>x</b>' * ROWS}</{HEADER}>".encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_a_small_file_gives_a_bounded_text(name: str, tmp_path: Path) -> None:
    """The header of a table comes with each row."""
    (tmp_path / name).write_bytes(FILES[name])
    items = list(read_sources(str(tmp_path), Settings(read_text=2)))
    failures = [item for item in items if isinstance(item, Failure)]
    assert any("setting read_text: 2 million" in failure.message for failure in failures)
    assert all(failure.document == name for failure in failures)
    kept = [item for item in items if isinstance(item, Document)]
    fields = sum(len(f"{key}{value}") for item in kept for key, value in item.metadata.items())
    assert sum(len(item.text) for item in kept) + fields < 2_100_000
    if name in ("a.xlsx", "a.csv", "a.zip"):
        assert kept  # what was read before the limit stays
    whole = [item for item in read_sources(str(tmp_path), Settings()) if isinstance(item, Failure)]
    assert whole == []


@pytest.mark.parametrize("name", LONG_NAMES)
def test_a_long_name_is_not_repeated(name: str) -> None:
    """The path of each value has the beginning of a name of 100,000 characters."""
    document = read_one(name, LONG_NAMES[name])
    paths = [one.value for one in document.locators if one.kind == "path"]
    assert len(paths) >= ROWS and max(map(len, paths)) <= 500
    assert "…" in paths[-1] and characters_of(document) < 500_000


def test_a_large_file_may_give_as_much_as_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"_id": "{n}", "text": "{"x" * 1000}"}}\n' for n in range(3000)))
    items = list(read_sources(str(path), Settings(read_text=1)))
    assert len(items) == 3000
    assert all(isinstance(item, Document) for item in items)


@pytest.mark.parametrize("kind", ["text", "markdown", "rst", "table", "jsonl"])
def test_plain_texts_of_some_size_are_read_in_a_process_with_limits(kind: str, tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    line = '{"text": "one, two"}\n' if kind == "jsonl" else "one, two\n"
    small.write_text(line)
    long = f'{{"text": "{"one, two " * 120_000}"}}\n'
    large.write_text(long if kind == "jsonl" else line * 120_000)
    assert not FORMATS[kind].apart(SourceFile(small, "small"))
    assert FORMATS[kind].apart(SourceFile(large, "large"))
    with Apart(1, 60, 800, 10**9) as apart:
        (read,) = [list(single(items)) for _, items in apart.read([(SourceFile(large, "large"), kind)])]
    assert read == list(items_of(SourceFile(large, "large"), kind))


def test_json_lines_of_some_size_are_read_here_while_each_is_short(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    file, kind = SourceFile(path, "corpus.jsonl"), FORMATS["jsonl"]
    path.write_text('{"text": "one, two"}\n' * 120_000)
    assert not kind.apart(file)
    path.with_name("citations.tsv").write_text("1\t2\n")  # it is read whole
    assert kind.apart(file)
    path.with_name("citations.tsv").unlink()
    path.write_text('{"text": "one, two"}\n' * 120_000, "utf-16")
    assert kind.apart(file)
    path.write_text('{"text": "one, two"}\n' * 120_000 + f'{{"text": "{"x" * 10**6}"}}\n')
    assert kind.apart(file)


def test_a_large_text_is_stopped_when_it_takes_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# a heading\n\ntext\n" * 400_000)
    with Apart(1, 0.1, 1500, 10**9) as apart:
        (items,) = [list(items) for _, items in apart.read([(SourceFile(path, "a.md"), "markdown")])]
    (failure,) = items
    assert isinstance(failure, Failure)
    assert "setting read_seconds" in failure.message


def test_a_table_of_too_many_columns_is_a_failure() -> None:
    file = SourceFile(Path("a.csv"), "a.csv", data=b"a," * 20_000 + b"\n" + b"x\n" * 3)
    (failure,) = items_of(file, "table")
    assert isinstance(failure, Failure)
    assert "20,001 columns" in failure.message and "16,384" in failure.message


def test_lines_of_a_table_end_in_any_way() -> None:
    data = b'a,b\r"x\ny",1\r\nz,2\n\nw,3'
    items = list(items_of(SourceFile(Path("a.csv"), "a.csv", data=data), "table"))
    texts = [item.text for item in items if isinstance(item, Document)]
    assert texts == ["a: x\ny\nb: 1", "a: z\nb: 2", "a: w\nb: 3"]


def test_symbols_of_a_long_file_with_accents_take_linear_time() -> None:
    pytest.importorskip("tree_sitter_python")
    body = "".join(f"    def été{n}(self):\n        return 'é'\n" for n in range(20_000))
    text = f"class Saison:\n{body}"
    with processor_seconds(8):  # before: every method counted all characters before it
        found = list(symbols(text, "python"))
    assert len(found) == 20_001
    assert text[found[-1].start : found[-1].end].startswith("    def été19999")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("# a", "a"),
        ("#  a b  ##  ", "a b"),
        ("# a #b", "a #b"),
        ("# a#", "a#"),
        ("### ##", "##"),
        ("  ## a\t#", "a"),
    ],
)
def test_headings_of_markdown(line: str, name: str) -> None:
    """A heading of level one is the title; one below it is the heading of its passage."""
    document = read_one("notes.md", f"{line}\n\ntext\n".encode())
    headings = [one.value for one in document.locators if one.kind == "heading"]
    if line.startswith("# "):
        assert (document.title, headings) == (name, [])
    else:
        assert (document.title, headings) == ("notes", [[name]])


def test_a_heading_with_blanks_takes_linear_time() -> None:
    with processor_seconds(2):  # before: 14 s
        document = read_one("a.md", b"# a" + b" " * 100_000 + b"b\n")
    assert document.title.startswith("a ")
