from __future__ import annotations

import codecs
import csv
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Meter
from ketrag_fast.building.ingest import Change, Ingested, apply_change
from ketrag_fast.building.sources import Sources
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import SourceFile, find, reader_for
from ketrag_fast.readers.decode import decode
from ketrag_fast.readers.plain_text import about_markdown, about_rst
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_trust import confirm_sources
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.locations import Locator
from tests.process import python
from tests.support.reading import read_all

Read = Callable[..., tuple[list[Document], list[Failure]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes one file and reads it as a source would."""

    def run(name: str, data: bytes | str, **settings: str) -> tuple[list[Document], list[Failure]]:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        with Tables(tmp_path / "t.sqlite") as tables:
            done = apply_change(
                tables, Change(str(path), others="drop"), Settings(**settings), Meter("read", None)
            )
            return list(tables.documents()), done.failures

    return run


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("naïve 😀 中文".encode(), "naïve 😀 中文"),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        (codecs.BOM_UTF16_LE + "é😀".encode("utf-16-le"), "é😀"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "é"),
        (codecs.BOM_UTF32_LE + "é".encode("utf-32-le"), "é"),
        (codecs.BOM_UTF32_BE + "é".encode("utf-32-be"), "é"),
        ("Café “x”".encode("cp1252"), "Café “x”"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode(data, "cp1252").text == text


@pytest.mark.parametrize(
    ("data", "fallback", "message"),
    [
        (b"a\0b", "cp1252", "byte 1 is zero"),
        (bytes(range(1, 32)) * 10, "cp1252", "control characters"),
        (b"\xff\xfe\x00", "cp1252", "utf-16-le, but invalid at byte 2"),
        (b"\xef\xbb\xbf\xff", "cp1252", "utf-8, but invalid at byte 3"),
        (b"abc \x81", "cp1252", r"not UTF-8 \(byte 4\) nor cp1252"),
        (b"abc \x81", "klingon", "'klingon' is not a known encoding"),
    ],
)
def test_not_a_text(data: bytes, fallback: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        decode(data, fallback)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"", "the file is empty"),
        ("a.txt", b"\n" * 1_000_000, "only white space"),
        ("a.txt", b"\0" * 1000, "byte 0 is zero"),
        ("a.txt", b"\x7fELF\x02\x01\x01\0\0\0\0", "is zero"),
        ("a.jsonl", b"", "the file is empty"),
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"\n\n", "the table is empty"),
        ("a.exe", b"MZ", "no reader for .exe files"),
        ("README", b"\x01text", "no reader for a file without a suffix"),
    ],
)
def test_bad_files_are_named(read: Read, name: str, data: bytes, message: str) -> None:
    documents, failures = read(name, data)
    assert documents == []
    assert [failure.document for failure in failures] == [name]
    assert message in failures[0].message


_HUGE = """
import resource, sys
from ketrag_fast.base.config import Settings
from ketrag_fast.building.ingest import Change, apply_change
from ketrag_fast.base.progress import Meter
from pathlib import Path
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_trust import confirm_sources
from ketrag_fast.storage.tables import Tables
with Tables(Path("t.sqlite")) as tables:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = apply_change(tables, Change(sys.argv[1], others="drop"), Settings(), Meter("read", None))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(done.documents, len(done.failures), after - before)
"""


@pytest.mark.parametrize(
    ("name", "head", "tail"), [("a.txt", b"", b""), ("a.jsonl", b'{"_id":"x","text":"', b'"}')]
)
def test_huge_single_line_within_bounded_memory(tmp_path: Path, name: str, head: bytes, tail: bytes) -> None:
    """The issue's 300 MB, scaled, in a process of its own: memory stays a small multiple of the file."""
    size = 30_000_000
    (tmp_path / name).write_bytes(head + b"word " * (size // 5) + tail)
    done = python(_HUGE, name, cwd=tmp_path)
    assert done.code == 0, done.err
    documents, failures, kilobytes = map(int, done.out.split())
    assert (documents, failures) == (1, 0)
    assert kilobytes * 1024 < 12 * size


def test_jsonl(read: Read) -> None:
    lines = [
        '{"_id": "a", "title": "T", "text": "one", "metadata": {"k": 1}}',
        "",
        '{"id": 5, "text": "two", "title": null}',
        '{"text": "nameless"}',
        '{"_id": "b", "text": "three"',
        "[1, 2]",
        '{"_id": "c"}',
        '{"_id": "d", "text": 5}',
        '{"_id": "e", "text": "x", "title": 5}',
        '{"_id": "f", "text": "x", "metadata": []}',
        '{"_id": "g", "text": " "}',
        '{"_id": true, "text": "x"}',
        '{"_id": "a", "text": "twice"}',
        '{"_id": "h", "text": "\\ud800"}',
        "[" * 100_000,
        '{"_id": "last", "text": "😀"}',
    ]
    documents, failures = read("a.jsonl", "\n".join(lines))
    assert documents == [
        Document("a", "one", "T", {"k": 1}),
        Document("5", "two"),
        Document("a.jsonl:4", "nameless"),
        Document("last", "😀"),
    ]
    named = [failure.document for failure in failures]
    assert named == [*(f"a.jsonl:{n}" for n in (5, 6, 7, 8, 9, 10, 11, 12)), "a", "h", "a.jsonl:15"]
    messages = [failure.message for failure in failures]
    assert messages[0].startswith("line 5 is not JSON: ")
    assert messages[8] == "the id 'a' is already in use; the first document with it is kept"
    assert "lone surrogate" in messages[9]


def test_jsonl_in_other_encodings(read: Read) -> None:
    line = '{"_id": "a", "text": "é"}\n'
    for data in (codecs.BOM_UTF8 + line.encode(), codecs.BOM_UTF16_LE + line.encode("utf-16-le")):
        assert read("a.jsonl", data) == ([Document("a", "é")], [])
    data = line.encode("cp1252") + b'{"_id": "b", "text": "\x81"}\n' + line.encode()
    documents, failures = read("a.jsonl", data, fallback_encoding="cp1252")
    where = Locator(0, 1, "encoding", "cp1252")
    assert documents == [Document("a", "é", "", {"encoding": "cp1252"}, (where,))]
    assert [failure.document for failure in failures] == ["a.jsonl:2", "a"]


def test_a_wrong_byte_does_not_spoil_a_text(read: Read) -> None:
    lines = "".join(f"Grüße aus Köln, {number} €\n" for number in range(200))
    documents, failures = read("a.txt", lines.encode() + b"caf\xe9 \xff\n")
    assert failures == []
    assert documents[0].text == lines + "café ÿ\n"
    documents, _ = read("b.txt", "Grüße aus Köln\n".encode("latin-1") * 9)
    assert documents[0].text.startswith("Grüße aus Köln\n")


def test_mail_that_is_sent_on_keeps_its_text(read: Read) -> None:
    head = "From: a@b.c\nSubject: {}\nContent-Type: text/plain\n\nSee below.\n\n"
    body = "----- {} -----\nFrom: d@e.f\n\nThe only copy,\nof four\nlines\nor five.\n"
    for subject, mark in [("x", "Forwarded message"), ("Fwd: x", "Original Message")]:
        documents, _ = read("a.eml", head.format(subject) + body.format(mark))
        assert "The only copy" in documents[0].text
    documents, _ = read("a.eml", head.format("Re: x") + body.format("Original Message"))
    assert documents[0].text == "See below.\n\n[5 quoted lines]"


def test_parts_of_mail_are_not_lost(read: Read) -> None:
    def part(kind: str, text: str, more: str = "") -> str:
        return f"--B\nContent-Type: {kind}\n{more}\n{text}\n"

    def mail(kind: str, *parts: str) -> str:
        head = f"From: a@b.c\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=B\n\n"
        return f"{head}{''.join(parts)}--B--\n"

    page = part("text/html", "<p>Please come to the party on Friday evening.</p>")
    documents, _ = read("a.eml", mail("alternative", page, part("text/calendar", "BEGIN:VCALENDAR")))
    assert "come to the party" in documents[0].text
    away = "Content-Disposition: attachment{}\n"
    named = away.format("; filename=notes.txt")
    parts = [
        part("text/plain", "Attached."),
        part("text/plain", "First notes.", named),
        part("text/plain", "Second notes.", named),
        part("text/plain", "Without a name.", away.format("")),
        part("text/csv", "name\nAda"),
    ]
    documents, failures = read("a.eml", mail("mixed", *parts))
    assert failures == []
    assert {document.id: document.text for document in documents} == {
        "a.eml": "Attached.",
        "a.eml/notes.txt": "First notes.",
        "a.eml/notes (2).txt": "Second notes.",
        "a.eml/attachment-3.txt": "Without a name.",
        "a.eml/attachment-4.csv#2": "name: Ada",
    }
    mbox = "From a@b.c Mon Sep 17 00:00:00 2001\nSubject: s\n\nText.\n\nFrom here on it is text.\n\n"
    documents, failures = read("a.mbox", mbox + mbox)
    assert failures == []
    assert [document.text for document in documents] == ["Text.\n\nFrom here on it is text."] * 2


def test_tables(read: Read) -> None:
    documents, failures = read("a.csv", 'ID,Title,text,year\n1,T,"a, ""b""\nc",1999\n2,,d,\n')
    assert documents == [
        Document("a.csv#2", 'a, "b"\nc', "T", {"id": 1, "year": 1999}),
        Document("a.csv#3", "d", "", {"id": 2}),
    ]
    assert failures == []
    documents, _ = read("b.tsv", "name\tcity\n\nAda\tLondon, UK\nBob\t\n")
    assert documents == [
        Document("b.tsv#3", "name: Ada\ncity: London, UK", "", {"name": "Ada", "city": "London, UK"}),
        Document("b.tsv#4", "name: Bob", "", {"name": "Bob"}),
    ]
    documents, failures = read("c.csv", "text;_id\nx;1\ny;2;3\n;3\nz\n")
    more = Document("2", "y", metadata={"column 3": "3"})
    assert documents == [Document("1", "x"), more, Document("c.csv#5", "z")]
    assert [(f.document, f.message) for f in failures] == [("c.csv:4", "line 4: the text is empty")]
    documents, _ = read("e.csv", "sep=;\r\nname;phone;phone\r\nBob;1,5;2\r\n")
    row = {"name": "Bob", "phone": "1,5", "phone (2)": 2}
    assert documents == [Document("e.csv#3", "name: Bob\nphone: 1,5\nphone (2): 2", "", row)]
    documents, _ = read("f.csv", "a,a (2),a,a\n1,2,3,4\n")
    assert [document.text for document in documents] == ["a: 1\na (2): 2\na (3): 3\na (4): 4"]
    documents, _ = read("d.csv", "text\n" + "x" * 500_000 + "\n")  # beyond the library's own limit
    assert len(documents[0].text) == 500_000


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Title\n\ntext", "Title"),
        ("text\n\n# Later #\n", "Later"),
        ("text\n\n## Section\n", ""),
        ("Setext\n======\n", "Setext"),
        ("---\ntitle: 'From front'\nx: 1\n---\n# Heading", "From front"),
        ("---\nx: 1\n---\n# Heading", "Heading"),
        ("---\nno end\n# Heading", "Heading"),
        ("```\n# code\n```\n# Real", "Real"),
        ("#hashtag\n", ""),
        ("", ""),
        ("text only", ""),
        ("# C# and F#\n", "C# and F#"),
    ],
)
def test_markdown_titles(text: str, title: str) -> None:
    assert about_markdown(text)[0] == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Title\n=====\n\ntext", "Title"),
        ("=====\nTitle\n=====\n", "Title"),
        ("..\n\nToo long a title\n====\n", ""),
        ("no title\n\nhere", ""),
    ],
)
def test_rst_titles(text: str, title: str) -> None:
    assert about_rst(text)[0] == title


def test_text_is_kept_as_read(read: Read) -> None:
    text = "Body é\r\n\r\n more \r\n"
    marks = Locator(0, len(text), "lines", 1), Locator(0, len(text), "markdown", 0)
    assert read("ada.md", text)[0] == [Document("ada.md", text, "ada", locators=marks)]
    marks = Locator(0, len(text), "lines", 5), marks[1]
    whole = f"---\r\ntitle: T\r\n---\r\n\r\n{text}"
    assert read("a.md", whole)[0] == [Document("a.md", text, "T", locators=marks)]


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}")


def ids(spec: str) -> list[str]:
    return [name for name, _ in find(spec).files]


def test_folder_in_the_order_of_path_bytes(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "b.txt",
        "a/z.txt",
        "a.txt",
        "a b/x.txt",
        "é.txt",
        "Z.txt",
        ".hidden.txt",
        ".git/x.txt",
        "a/.x.md",
    )
    expected = ["Z.txt", "a b/x.txt", "a.txt", "a/z.txt", "b.txt", "é.txt"]
    assert ids(str(tmp_path)) == expected
    assert ids(f"{tmp_path}{os.sep}") == expected


def test_globs(tmp_path: Path) -> None:
    tree(tmp_path, "docs/a.md", "docs/b.txt", "docs/x/c.md", "docs/.d.md", "docs/[e].md")
    assert ids(str(tmp_path / "docs" / "*.md")) == ["[e].md", "a.md"]
    assert ids(str(tmp_path / "docs" / "**" / "*.md")) == ["[e].md", "a.md", "x/c.md"]
    assert ids(str(tmp_path / "docs" / "[e].md")) == ["[e].md"]  # a file of that very name
    assert ids(str(tmp_path / "docs" / "*.pdf")) == []


def test_links_and_loops(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    tree(root, "a/x.txt", "z/y.txt")
    (root / "a" / "loop").symlink_to(root)
    (root / "0").symlink_to(root / "z")  # a second way to a folder: the real one counts
    (root / "other").symlink_to(tmp_path / "other")
    tree(tmp_path, "other/o.txt")
    (root / "l.txt").symlink_to(root / "a" / "x.txt")
    (root / "broken.txt").symlink_to(root / "nowhere")
    (root / "self.txt").symlink_to(root / "self.txt")
    found = find(str(root))
    assert [name for name, _ in found.files] == ["a/x.txt", "l.txt", "z/y.txt"]
    assert sorted(failure.document for failure in found.failures) == ["broken.txt", "other", "self.txt"]
    found = find(str(root), follow=True)
    assert [name for name, _ in found.files] == ["a/x.txt", "l.txt", "other/o.txt", "z/y.txt"]
    assert [failure.document for failure in found.failures] == ["broken.txt", "self.txt"]
    assert ids(str(root / "**" / "x.txt")) == ["a/x.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert find(str(tmp_path)).files == ()
    assert find(str(tmp_path / "pipe.txt")).failures[0].message == "neither a file nor a folder"


def load(tmp_path: Path, sources: Sources, **settings: bool) -> tuple[Ingested, list[Document]]:
    with Tables(tmp_path / "t.sqlite") as tables:
        done = apply_change(tables, Change(sources), Settings(**settings), Meter("read", None))
        return done, list(tables.documents())


def test_data_set_folder_is_its_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    tree(folder, "qrels.tsv", "notes.txt")
    (folder / "corpus.jsonl").write_text('{"_id": "p", "title": "T", "text": "x"}')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "x"}')
    done, documents = load(tmp_path, str(folder))
    assert (documents, done.failures) == ([Document("p", "x", "T")], [])


def test_same_id_from_two_sources(tmp_path: Path) -> None:
    tree(tmp_path, "x/readme.md", "y/readme.md", "y/more.md", "y/photo.png")
    done, documents = load(tmp_path, [str(tmp_path / "x"), str(tmp_path / "y")])
    assert [(d.id, d.text) for d in documents] == [
        ("readme.md", "text of x/readme.md"),
        ("more.md", "text of y/more.md"),
        ("y/readme.md", "text of y/readme.md"),
    ]
    assert done.failures == []
    assert done.warnings == ["skipped 1 file of an unknown format: .png (1)"]


def test_a_file_and_its_folder_are_both_sources(tmp_path: Path) -> None:
    tree(tmp_path, "docs/a.md", "docs/x/b.md")
    done, documents = load(tmp_path, [str(tmp_path / "docs" / "x" / "b.md"), str(tmp_path / "docs")])
    assert [document.id for document in documents] == ["b.md", "a.md"]
    assert done.failures == []
    with Tables(tmp_path / "t.sqlite") as tables:  # a build records what its user names; `load` does not
        confirm_sources(Layout(tmp_path), [row.spec for row in tables.sources()])
    done, documents = load(tmp_path, str(tmp_path / "docs" / "**" / "*.md"))
    assert (len(documents), done.failures) == (2, [])


@pytest.mark.parametrize("source", ["", "nowhere", "*.nothing", "x" * 5000, "a\0b"])
def test_sources_that_are_not_there(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError):
        load(tmp_path, source)


def test_documents_of_a_program(tmp_path: Path) -> None:
    given = [
        Document("a", "x"),
        Document("a", "y"),
        Document("", "x"),
        Document("b", ""),
        Document("c", "x", metadata={"k": object()}),
        Document("d", 5),  # type: ignore[arg-type]
        Document("only a title", "", "Title"),
    ]
    done, documents = load(tmp_path, given)
    assert [document.id for document in documents] == ["a", "only a title"]
    assert [failure.document for failure in done.failures] == ["a", "", "b", "c", "d"]


def test_file_that_vanishes_while_it_is_read(tmp_path: Path) -> None:
    reader = reader_for(".TXT")
    assert reader is not None
    with pytest.raises(FileNotFoundError):
        list(reader(SourceFile(tmp_path / "gone.txt", "gone.txt")))
    assert reader_for(".exe") is None


def test_long_cells_leave_the_limit_of_other_users_of_csv_alone(tmp_path: Path) -> None:
    """Tables with cells above the library's limit, read in threads while others use csv themselves."""
    limit = csv.field_size_limit()
    long = "word " * limit
    source = tmp_path / "long.csv"
    source.write_text(f'_id,text\na,"{long}"\nb,"{long}"\n')
    reader = reader_for(".csv")
    assert reader is not None
    ready = threading.Barrier(3)
    texts: list[str] = []
    refused: list[bool] = []

    def ours() -> None:
        ready.wait()
        for _ in range(5):
            found = list(reader(SourceFile(source, "long.csv", "cp1252")))
            texts.extend(item.text for item in found if isinstance(item, Document))

    def another() -> None:
        ready.wait()
        for _ in range(20):
            try:
                list(csv.reader([long]))
            except csv.Error:
                refused.append(csv.field_size_limit() == limit)

    threads = [threading.Thread(target=work) for work in (ours, ours, another)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [long] * 20
    assert refused == [True] * 20
    assert csv.field_size_limit() == limit


def test_an_empty_file_of_code_is_no_failure() -> None:
    assert read_all("__init__.py", b" \n") == ([], [])
    assert read_all("a.txt", b"") == ([], ["a.txt: the file is empty"])


def test_a_line_without_text_is_its_values(read: Read) -> None:
    documents, failures = read("a.jsonl", '{"id": "x", "content": "whales"}\n{}')
    assert [(one.id, one.text) for one in documents] == [("x", "content: whales")]
    assert [failure.message for failure in failures] == ["line 2: the record has no values"]
