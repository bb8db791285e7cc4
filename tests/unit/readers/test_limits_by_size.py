"""What a small file may unpack to, and how many documents and characters it may give."""

from __future__ import annotations

import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import Item, SourceFile, batches_of, items_of, jsonl, parser_memory, protocol, single
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.readers.office import sheets
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.readers.table import longest_name
from ketrag_fast.readers.zip_xml import open_package
from ketrag_fast.types import Document, Failure
from tests.support.office_files import archive, xlsx
from tests.support.parts import part
from tests.support.pdf_files import Page, pdf
from tests.support.reading import read_all

if sys.platform != "win32":
    import resource


def test_lines_that_are_not_json_are_parsed_for_their_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them took 10 s."""
    parsed: list[int] = []
    parse = jsonl.parse_line

    def noted(file: SourceFile, line: int, *rest: Any) -> Item:
        parsed.append(line)
        return parse(file, line, *rest)

    monkeypatch.setattr(jsonl, "parse_line", noted)
    odd = '{"text": "kept", "metadata": {"a": NaN}}\n'
    items = list(single(batches_of(*whole("a.jsonl", ("{\n" * 3_000 + odd) * 2))))
    assert parsed == [*range(1, 1_001), 3_001, 6_002]
    failures = [one for one in items if isinstance(one, Failure)]
    assert [one.document for one in failures[:1_000]] == [f"a.jsonl:{line}" for line in range(1, 1_001)]
    assert [one.message for one in failures[1_000:]] == ["5,000 further lines or rows cannot be read"]
    assert [one.text for one in items if isinstance(one, Document)] == ["kept", "kept"]


def test_many_short_records_are_read_together() -> None:
    """250,000 of them took 22 s."""
    lines = [f'{{"a":{n % 10}}}' for n in range(90_000)]
    lines[45_000] = '{"_id":"own","text":"b"}'
    items = list(single(batches_of(*whole("a.jsonl", "\n".join(lines) + "\n"))))
    documents = [one for one in items if isinstance(one, Document)]
    assert documents[1] == Document("a.jsonl:6", "\n".join(f"a: {n % 10}" for n in range(5, 10)))
    assert documents[9_000:9_002] == [
        Document("own", "b"),
        Document("a.jsonl:45002", "\n".join(f"a: {n % 10}" for n in range(1, 6))),
    ]
    assert len(documents) == 18_001
    (failure,) = [one for one in items if isinstance(one, Failure)]
    assert (failure.code, failure.document) == ("part", "a.jsonl")
    assert failure.message.startswith("each 5 adjacent records are read as one document")


@pytest.mark.parametrize(
    "line",
    ['{"_id":"%d","text":"a"}', '{"text":"The ship sailed on %d"}', '{"text":"a","metadata":{"n":%d}}'],
)
def test_other_records_are_read_one_by_one(line: str) -> None:
    lines = "\n".join(line % n for n in range(70_000))
    items = list(single(batches_of(*whole("a.jsonl", lines))))
    assert len(items) == 70_000
    assert all(isinstance(one, Document) for one in items)


def whole(name: str, text: str) -> tuple[SourceFile, str]:
    file = SourceFile(Path(name), name, data=text.encode())
    return file, BY_SUFFIX[file.suffix]


ROWS = "".join(f"{n},{n % 7}\n" for n in range(200_000))


def test_many_short_rows_are_read_together() -> None:
    """A million rows with one digit each took more than 70 s."""
    items = list(items_of(*whole("a.csv", f"id,day\n{ROWS}")))
    documents = [one for one in items if isinstance(one, Document)]
    assert len(documents) == 18_182
    assert documents[0].id == "a.csv#2"
    assert documents[1].id == "a.csv#13"
    assert documents[1].text == "\n\n".join(f"id: {n}\nday: {n % 7}" for n in range(11, 22))
    assert "".join(one.text for one in documents).count("id: ") == 200_000
    (failure,) = [one for one in items if isinstance(one, Failure)]
    assert (failure.code, failure.document) == ("part", "a.csv")
    assert failure.message.startswith(
        "each 11 adjacent rows are read as one document, without fields for filters"
    )


def test_many_rows_of_digits_are_read_together_without_names() -> None:
    items = list(items_of(*whole("a.csv", "length,width\n" + "1,2\n" * 150_000)))
    documents = [one for one in items if isinstance(one, Document)]
    assert len(documents) == 18_750
    assert documents[1].text == "\n".join(["1, 2"] * 8)


def test_many_short_rows_with_texts_keep_the_names_of_columns() -> None:
    """99,000 of them took 9 s."""
    rows = "".join(f"w{n},{n % 7},\n" for n in range(70_000))
    items = list(items_of(*whole("a.csv", f"word,day,\n{rows}")))
    documents = [one for one in items if isinstance(one, Document)]
    assert len(documents) == 17_500
    assert documents[1].id == "a.csv#6"
    assert documents[1].text == "\n\n".join(f"word: w{n}\nday: {n % 7}" for n in range(4, 8))
    (failure,) = [one for one in items if isinstance(one, Failure)]
    assert failure.message.startswith(
        "each 4 adjacent rows are read as one document, without fields for filters"
    )


@pytest.mark.parametrize("shape", [(90, 3_000), (30_000, 9)])
def test_a_matrix_is_read_without_names_of_columns(shape: tuple[int, int]) -> None:
    """900,000 cells of a digit each took 8 to 15 s, most of it for their names."""
    rows, columns = shape
    names = [f"column{n}" for n in range(columns)]
    text = f"{','.join(names)}\n" + f"{','.join('7' * columns)}\n" * rows
    items = list(items_of(*whole("a.csv", text)))
    documents = [one for one in items if isinstance(one, Document)]
    assert [one.id for one in documents[:2]] == ["a.csv#columns", "a.csv#2"]
    assert documents[0].text == ", ".join(names)
    assert len(documents) == rows + 1
    assert all(one.text == ", ".join("7" * columns) and not one.metadata for one in documents[1:])
    (failure,) = [one for one in items if isinstance(one, Failure)]
    assert (failure.code, failure.document) == ("part", "a.csv")
    assert failure.message.startswith("rows are read without names of columns and without fields for filters")


@pytest.mark.parametrize(
    "rows",
    [
        f"{','.join(['word'] * 9)}\n" * 30_000,  # longer cells
        f"7{',' * 8}\n" * 40_000,  # most cells are empty
        f"{','.join('7' * 9)}\n" * 20_000,  # fewer cells
    ],
)
def test_other_wide_tables_keep_the_names_of_columns(rows: str) -> None:
    names = ",".join(f"c{n}" for n in range(9))
    first = next(iter(items_of(*whole("a.csv", f"{names}\n{rows}"))))
    assert isinstance(first, Document) and first.text.startswith("c0: ") and "c0" in first.metadata


@pytest.mark.parametrize(
    "text",
    [
        f"id,day\n{ROWS[:200_000]}",
        "id,text\n" + "".join(f"{n},The ship sailed\n" for n in range(70_000)),
        "_id,n\n" + "".join(f"r{n},{n % 7}\n" for n in range(101_000)),
        "id,day\n" + "\n" * 300_000 + ROWS[:2_000],
    ],
)
def test_fewer_or_longer_rows_are_read_one_by_one(text: str) -> None:
    items = list(items_of(*whole("a.csv", text)))
    assert len(items) == len(text.split()) - 1 - 2 * text.count("The ship sailed")
    assert all(isinstance(one, Document) and one.metadata for one in items)


def test_names_of_columns_are_cut_by_the_number_of_rows() -> None:
    names = ["a" * 150, "b" * 30, "c"]
    assert longest_name(names, 1_000, 10_000) == 200
    assert longest_name(names, 50_000, 0) == 25
    assert longest_name(names, 50_000, 1_200_000) == 200  # it has long cells
    assert longest_name(names, 10**9, 0) == 20
    rows = "x,y,z\n" * 39_000
    document = next(iter(items_of(*whole("a.csv", f"{','.join(names)}\n{rows}"))))
    assert isinstance(document, Document)
    assert list(document.metadata) == ["a" * 49 + "…", "b" * 30, "c"]


def test_a_small_file_gives_a_hundred_characters_for_each_byte() -> None:
    """20,000 cells with one shared text of 500 kB gave 10 GB."""
    cells = [f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 2_000)]
    documents, failures = read_all("a.xlsx", xlsx({"s": cells}, ["word " * 20_000]))
    assert 18_000_000 < sum(len(one.text) for one in documents) < 20_000_000
    why = "the file gives more than 20,000,000 characters (100 for each byte); the text before that is kept"
    assert failures == [f"a.xlsx: {why}"]
    assert documents[0].text is not documents[1].text  # with the name of the column


def test_a_long_shared_text_is_one_object() -> None:
    strings = sheets._Strings()
    for text in ("short", "long " * 1_000):
        strings.start("t", {})
        strings.text(text)
        strings.end("t")
        strings.end("si")
    assert strings[1] is strings[1]
    assert (strings[0], strings[1]) == ("short", "long " * 1_000)


def test_what_archives_in_archives_unpack_to_is_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """8,000 archives in an archive of 42 kB unpacked 4 GB."""
    monkeypatch.setattr(protocol, "UNPACKED", 1_000_000)
    inner = archive({f"{n}.txt": b"a" * 300_000 for n in range(3)})
    whole_file = archive({f"{n}.zip": inner for n in range(4)})
    documents, failures = read_all("x.zip", whole_file)
    assert [one.id for one in documents] == [f"x.zip/0.zip/{n}.txt" for n in range(3)]
    why = "decompression bomb: the file unpacks to more than 100 times its size"
    assert failures == [f"x.zip/1.zip/0.txt: {why}", f"x.zip/2.zip: {why}"]
    file = SourceFile(Path("x.zip"), "x.zip", data=whole_file)
    first, second = (list(items_of(file, "zip")) for _ in range(2))
    assert first == second  # the count begins again


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DOCX file of 1.4 MB took 20 s, a sheet of 2.8 MB more than 100 s."""
    data = archive({"a.txt": b" " * 25_000_000})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("it is opened"))
    file = SourceFile(Path("a.zip"), "a.zip", data=data)
    with open_package(file) as package, pytest.raises(DocumentError, match=r"zip bomb: .* than 100 times"):
        package.bytes("a.txt")


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
def test_a_pdf_that_unpacks_to_much_text_is_refused(tmp_path: Path) -> None:
    """It took 1.4 GB, and the message was that the process crashed."""
    part("pypdfium2", "documents")
    content = zlib.compress(b"BT /F1 10 Tf 10 10 Td (Hello words here) Tj ET\n" * 4_000_000, 9)
    data = pdf([Page().raw("q Q")])
    stream = b"/Filter /FlateDecode /Length %d >>\nstream\n" % len(content) + content
    before = data.rindex(b"/Length"), data.rindex(b"\nendstream")
    path = tmp_path / "a.pdf"
    path.write_bytes(data[: before[0]] + stream + data[before[1] :])
    with Apart(1, 300, 1_500, 10**9) as apart:
        (read,) = [list(items) for _, items in apart.read([(SourceFile(path, "a.pdf"), "pdf")])]
    (failure,) = read
    assert isinstance(failure, Failure)
    assert "memory limit (setting read_memory: 1,500 MB, less for a small file)" in failure.message


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
@pytest.mark.parametrize(("megabytes", "times"), [(0, 1), (500, 1), (1_500, 1), (4_500, 3)])
def test_a_larger_read_memory_raises_the_limit_of_a_small_file(
    megabytes: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    monkeypatch.setattr(parser_memory, "_STATM", Path(__file__).with_name("__init__.py"))
    monkeypatch.setattr(Path, "read_text", lambda _: "1000 900 1")
    file = SourceFile(Path("a.pdf"), "a.pdf", data=bytes(1_000))
    with parser_memory.memory_in_proportion(file, megabytes):
        pass
    added = (250_000_000 + 80 * 1_000) * times
    wanted = 1000 * resource.getpagesize() + added
    assert [limit for limit, _ in limits] == [wanted, resource.RLIM_INFINITY]
