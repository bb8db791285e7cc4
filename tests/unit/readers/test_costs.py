"""What the form of a text may cost: reading takes time in proportion to its size, whatever it repeats."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ketrag_fast.base import safe_xml
from ketrag_fast.errors import BackendMissing, DocumentError
from ketrag_fast.readers import SourceFile
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.readers.html import page_of
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import DocumentBatch
from tests.support.effort import grows_linearly
from tests.support.office_files import xlsx
from tests.support.parts import part
from tests.support.reading import read_all, read_one

MAILS: dict[str, Callable[[int], str]] = {
    "addresses": lambda n: f"From: a@b\nTo: {', '.join(f'a{i}@b' for i in range(n))}\n\nx",
    "parentheses": lambda n: f"From: a@b\nTo: {'(' * n}\n\nx",
    "quotation marks": lambda n: f"From: a@b\nCc: {chr(34) * n}\n\nx",
    "folded lines": lambda n: "From: a@b\nSubject: a\n" + " b\n" * n + "\nx",
    "parameters": lambda n: _attachment("".join(f" filename*{i}=a;" for i in range(n))),
    "comments": lambda n: f"From: a@b\nContent-Type: text/plain{'(a)' * n}\n\nx",
    "alternatives": lambda n: (
        "From: a@b\nContent-Type: multipart/alternative; boundary=b\n\n"
        + "--b\nContent-Type: text/plain\n\nx\n" * (n // 10)
    ),
    "attachments of one name": lambda n: (
        "From: a@b\nContent-Type: multipart/mixed; boundary=b\n\n"
        + "--b\nContent-Disposition: attachment; filename=a.txt\n\nx\n" * (n // 40)
    ),
}


def _attachment(parameters: str) -> str:
    head = "From: a@b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
    return f"{head}Content-Disposition: attachment;{parameters}\n\nx\n--b--\n"


@pytest.mark.parametrize("form", MAILS)
def test_a_header_of_a_mail(form: str) -> None:
    """The standard parser took 70 s for 180,000 addresses."""
    grows_linearly(lambda n: read_all("a.eml", MAILS[form](n).encode()), 20_000)


PAGES: dict[str, Callable[[int], str]] = {
    "attributes": lambda n: f"<a {' '.join(f'a{i}=1' for i in range(n))}>x</a>",
    "options": lambda n: "<select>" + "<option>x" * n,
    "titles": lambda n: f"<title>{'word ' * n}</title>" + "<p>text</p>" * n,
    "headings": lambda n: "<h2>a</h2><p>b</p>" * n,
}


@pytest.mark.parametrize("form", PAGES)
def test_a_page(form: str) -> None:
    """The parser took more than 75 s for 200,000 attributes of one tag, and 110 s for 200,000 options."""
    part("resiliparse", "documents")
    try:
        page_of("<p>x</p>")
    except BackendMissing:
        pytest.skip("resiliparse is missing")
    grows_linearly(lambda n: page_of(PAGES[form](n)), 10_000)


TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "headings": ("a.md", lambda n: "# a\n" * n),
    "setext headings": ("a.md", lambda n: "a\n=\n" * n),
    "front matter": ("a.md", lambda n: "---\na:\n" + "- b\n" * min(n, 4_900) + "---\nx\n" * n),
    "underlines": ("a.rst", lambda n: "ab\n==\n\n" * n),
    "directives": ("a.rst", lambda n: ".. code::\n\n   x\n\n" * n),
    "blocks": ("a.org", lambda n: "#+begin_src\n#+begin_example\n" * n),
    "deep outlines": ("a.org", lambda n: "".join(f"{'*' * (i % 8 + 1)} a\nb\n" for i in range(n))),
    "environments": ("a.tex", lambda n: "\\begin{verbatim}\n\\begin{minted}\n" * n),
    "braces": ("a.tex", lambda n: "\\section{" * n),
    "listings": ("a.adoc", lambda n: "----\n....\n" * n),
    "groups": ("a.rtf", lambda n: "{\\rtf1 " + "{a}" * n + "}"),
    "cells": ("a.rtf", lambda n: "{\\rtf1 \\intbl " + "a\\cell " * n + "\\row}"),
    "macros": ("a.1", lambda n: ".TH A 1\n" + ".SH a\nb\n" * n),
    "cues": ("a.srt", lambda n: "1\n00:00:01,000 --> 00:00:02,000\na\n\nb\n" * n),
    "lists": ("a.json", lambda n: f"[{','.join('[1]' for _ in range(n))}]"),
    "keys": ("a.json", lambda n: f"{{{','.join(f'{chr(34)}{i}{chr(34)}:1' for i in range(n))}}}"),
    "elements": ("a.xml", lambda n: f"<a>{'<b>x</b>' * n}</a>"),
    "columns": ("a.csv", lambda n: f"{','.join(f'c{i}' for i in range(n))}\n1,2\n"),
    "equal columns": ("a.csv", lambda n: "a," * (n // 2) + "\n1,2\n3,4\n"),
    "quotation marks": ("a.csv", lambda n: '"' * n),
    "functions": ("a.py", lambda n: "def f(): pass\n" * n),
    "methods": ("a.java", lambda n: "class A {\n" + "void f() {}\n" * n + "}\n"),
}


@pytest.mark.parametrize("form", TEXTS)
def test_a_text(form: str) -> None:
    name, text_of = TEXTS[form]
    grows_linearly(lambda n: read_all(name, text_of(n).encode()), 8_000)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the processor time of the fastest of three tries."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def test_rows_cost_the_cells_that_they_have() -> None:
    """60,000 rows with a cell in the last column took a billion steps."""

    def sheet(column: str) -> bytes:
        cells = "".join(f'<row r="{n}"><c r="{column}{n}"><v>{n}</v></c></row>' for n in range(2, 2_000))
        return xlsx({"s": [f'<row r="1"><c r="{column}1" t="inlineStr"><is><t>h</t></is></c></row>', cells]})

    near, far = sheet("B"), sheet("XFD")
    assert (
        seconds_of(lambda: read_all("a.xlsx", far)) < 4 * seconds_of(lambda: read_all("a.xlsx", near)) + 0.2
    )
    document = read_all("a.xlsx", far)[0][-1]
    assert (document.text, document.locators[1].value) == ("h: 1999", "XFD1999:XFD1999")


def test_short_rows_below_a_wide_header() -> None:
    names = ",".join(f"c{n}" for n in range(10_000))
    short = "1\n" * 2_000
    wide = seconds_of(lambda: read_all("a.csv", f"{names}\n{short}".encode()))
    assert wide < 4 * seconds_of(lambda: read_all("a.csv", f"c0,c1\n{short}".encode())) + 0.2


def test_the_text_of_a_long_header_is_decoded() -> None:
    names = ", ".join(f"=?utf-8?q?Gerda_M=C3=BCller?= <g{n}@b.example>" for n in range(500))
    document = read_one("a.eml", f"From: a@b\nTo: {names}\nSubject: s\n\nx".encode())
    assert str(document.metadata["to"]).startswith("Gerda Müller <g0@b.example>, Gerda Müller <g1@")
    assert len(str(document.metadata["to"])) == 2_000


def test_the_first_options_and_attributes_are_read() -> None:
    part("resiliparse", "documents")
    attributes = " ".join(f"a{n}=1" for n in range(1_000))
    page = page_of(
        f"<p>Before <a href='b.html' {attributes}>the link</a> and after.</p>" + "<option>x" * 3_000
    )
    assert "Before the link and after." in page.text and page.metadata["links"] == ["b.html"]


def test_a_tag_that_comes_in_pieces() -> None:
    """A tag of 360 MB in a DOCX file of 0.9 MB took hours: it was read again with each piece."""

    def pieces(size: int) -> Iterator[bytes]:
        yield b"<a b='"
        yield from (b"x" * 1_000 for _ in range(size))
        yield b"'>text</a>"

    grows_linearly(lambda n: safe_xml.parse(pieces(n), safe_xml.Handler(), "a.xml"), 4_000)
    with pytest.raises(DocumentError, match="a tag is longer than 20,000,000 bytes"):
        safe_xml.parse(pieces(60_000), safe_xml.Handler(), "a.xml")


def test_bad_lines_are_reported_one_by_one_up_to_a_number() -> None:
    documents, failures = read_all("a.jsonl", b"{\n" * 1_500 + b'{"text": "a"}\n')
    assert [one.text for one in documents] == ["a"] and len(failures) == 1_001
    assert failures[-1] == "a.jsonl: 500 further lines or rows cannot be read"


def test_functions_and_headings_beyond_a_number_are_no_locations() -> None:
    part("tree_sitter", "code")
    (document,), failures = read_all("a.py", b"def f(): pass\n" * 45_000)
    assert failures == ["a.py: only its first 39,998 functions and classes are used as locations"]
    assert document.text == "def f(): pass\n" * 45_000 and len(document.locators) == 40_000
    text = "".join(f"# h{n}\n" for n in range(50_000))
    (document,), failures = read_all("a.md", text.encode())
    assert failures == ["a.md: 9,999 further headings are not used as locations: there are too many"]
    assert document.text == text


def test_paths_beyond_a_number_are_those_of_values_nearby() -> None:
    values = [str(n) for n in range(90_000)]
    (document,), failures = read_all("a.json", f"[{','.join(values)}]".encode())
    places = [one for one in document.locators if one.kind == "path"]
    assert failures == [] and len(places) <= 40_000
    assert [before.end < after.start for before, after in pairwise(places)] == [True] * (len(places) - 1)
    shown = (document.text[one.start : one.end].split() for one in places)
    assert [value for own in shown for value in own] == document.text.split(), "each value has a location"


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
@pytest.mark.parametrize(
    ("name", "text"),
    [("a.cpp", "a<" * 1_000_000), ("a.java", "@A " * 600_000), ("a.rs", "a+" * 1_000_000)],
)
def test_a_parser_that_needs_too_much_memory_costs_no_text(tmp_path: Path, name: str, text: str) -> None:
    """Nested templates of 2 MB took 1.5 GB; now such a file is read without functions."""
    part("tree_sitter", "code")
    (tmp_path / name).write_text(text)
    with Apart(1, 60, 1_500, 10_000_000) as apart:
        file = SourceFile(tmp_path / name, name), BY_SUFFIX[Path(name).suffix]
        found = [
            item for _, items in apart.read([file]) for item in items if not isinstance(item, DocumentBatch)
        ]
    (document,) = (one for one in found if isinstance(one, Document))
    assert document.text == text
    (failure,) = (one for one in found if isinstance(one, Failure))
    assert failure.code == "part" and failure.message.endswith(
        "its text is kept without functions and classes"
    )
