"""Man pages, AsciiDoc, Org, LaTeX, notebooks, subtitles, and any other file with text inside."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.readers import SourceFile
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.types import Document
from tests.support.reading import at, read_all, read_one
from tests.support.samples import samples


def headings(name: str, data: bytes) -> list[object]:
    return [value for value, _ in at(read_one(name, data), "heading")]


@pytest.mark.parametrize("name", ["a.adoc", "a.org", "a.tex"])
def test_titles_and_headings_of_markup(name: str) -> None:
    data = samples()[name]
    found = read_one(name, data)
    assert (found.title, found.text) == ("T", data.decode())
    first = "A x" if name == "a.tex" else "A"
    assert headings(name, data) == [[first], [first, "B"]]


def test_a_man_page() -> None:
    data = (
        b'\'\\" t\n.\\" comment\n.TH LS "1" "May 2024" GNU\n.SH NAME\nls \\- list directory contents\n'
        b".SH DESCRIPTION\n.PP\nList\n.B information\nabout files\n(\\fIthe\\fR current).\n\nNext.\n"
        b'.TP\n\\fB\\-a\\fR, \\fB\\-\\-all\\fR\ndo not ignore\n.SS "See also"\n.BR ls (1),\n\\(lqquoted\\(rq\n'  # noqa: E501
        b".nf\nx  =  1\n    y\n.fi\nend\\e\n"
    )
    found = read_one("ls.1", data)
    assert found.title == "ls(1)"
    assert found.text == (
        "NAME\n\nls - list directory contents\n\nDESCRIPTION\n\nList information about files (the current).\n\n"  # noqa: E501
        "Next.\n\n-a, --all\n\ndo not ignore\n\nSee also\n\nls(1), “quoted”\n\nx  =  1\n    y\n\nend\\"
    )
    paths = [value for value, _ in at(found, "heading")]
    assert paths == [["NAME"], ["DESCRIPTION"], ["DESCRIPTION", "See also"]]
    packed = read_one("man1/ls.1.gz", gzip.compress(data))
    assert (packed.id, packed.title, packed.text) == ("man1/ls.1.gz", "ls(1)", found.text)
    mdoc = (
        b".Dd May 6, 2024\n.Dt CAT 1\n.Os\n.Sh NAME\n.Nm cat\n.Nd concatenate\n.Sh SYNOPSIS\n.Nm\n.Op Fl a\n"
    )
    found = read_one("cat.1", mdoc)
    escaped = read_one("git-add.1", b'.TH "GIT\\-ADD" "1"\n.SH NAME\ngit\\-add\n')
    assert (escaped.title, escaped.text) == ("git-add(1)", "NAME\n\ngit-add")
    assert (found.title, found.text) == ("cat(1)", "NAME\n\ncat concatenate\n\nSYNOPSIS\n\ncat Fl a")
    assert read_one("notes.1", b"Plain notes.").text == "Plain notes."


def test_a_notebook() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Ships\n", "text\n"]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [{"text": "x" * 9_000}, {"data": {"text/plain": "y"}}],
        },
        {"cell_type": "code", "source": "", "outputs": []},
        {"cell_type": "markdown", "source": "## Crew\nmen"},
        "broken",
        {"source": 5, "outputs": 7},
    ]
    book = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}
    found = read_one("a.ipynb", json.dumps(book).encode())
    assert (found.title, found.metadata) == ("Ships", {"language": "python"})
    assert found.text == f"# Ships\ntext\n\nprint(1)\n{'x' * 2_000}\n\n## Crew\nmen"
    assert [value for value, _ in at(found, "cell")] == [1, 2, 4]
    assert at(found, "heading") == [(["Crew"], "## Crew\nmen")]
    for bad in (b"{", b"[]", b'{"cells": 5}', b'{"cells": []}', b"[" * 100_000):
        assert read_all("a.ipynb", bad)[1]


def test_a_notebook_with_much_output() -> None:
    """The text is bounded by the cells, not by their outputs."""
    cell = {"cell_type": "code", "source": "f()", "outputs": [{"text": ["line\n"] * 100}] * 2_000}
    found = read_one("a.ipynb", json.dumps({"cells": [cell]}).encode())
    assert len(found.text) < 2_100


def test_a_notebook_with_100_mb_of_output(tmp_path: Path) -> None:
    """It is read within the limits of a build, and its text stays that of its cells."""
    outputs = [{"text": "x" * 10_000_000}]
    cells = [{"cell_type": "code", "source": f"step({n})", "outputs": outputs} for n in range(10)]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}), "utf-8")
    assert path.stat().st_size > 100_000_000
    with Apart(1, 60, 1_500, 1_000_000_000) as apart:
        job = SourceFile(path, "a.ipynb"), "notebook"
        (document,) = (item for _, items in apart.read([job]) for item in items)
    assert isinstance(document, Document)
    assert all(f"step({n})" in document.text for n in range(10))
    assert len(document.text) < 21_000


def test_subtitles() -> None:
    cues = "".join(
        f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:{n // 60:02}:{n % 60:02},900\n<i>Sentence {n}</i>\nof many.\n\n"  # noqa: E501
        for n in range(1, 61)
    )
    found = read_one("a.srt", cues.encode())
    assert found.text.startswith("Sentence 1 of many. Sentence 2 of many.")
    assert "-->" not in found.text
    marks = at(found, "time")
    assert marks == [(f"00:0{n // 60}:{n % 60:02}", f"Sentence {n} of many.") for n in range(1, 61)]
    assert found.text.count("\n\n") == 2  # a long paragraph ends with a sentence
    vtt = (
        b"WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 align:left\nHello.\n\n00:02.000 --> 00:03.000\nHello.\n"
    )
    assert read_one("a.vtt", vtt).text == "Hello."
    assert read_all("a.srt", b"no cue at all")[1] == ["a.srt: the file has no subtitles"]


def test_a_passage_has_the_time_of_its_cue(tmp_path: Path) -> None:
    lecture = Path(__file__).parents[2] / "data" / "inputs" / "subtitles" / "lecture.srt"
    with Index.build(lecture, tmp_path / "ix", settings=Settings(threads=1)) as index:
        found = index.retrieve("when was the turbine installed").passages[0]
        assert found.text == "The turbine was installed in 2016 at Cape Sharp."
        assert found.location == {"time": "00:12:30"}


@pytest.mark.parametrize("name", ["Makefile", "a.conf", "a.unknown", "README", "b.3"])
def test_text_with_an_unknown_suffix(name: str) -> None:
    assert read_one(name, "Größe = 5\n".encode()).text == "Größe = 5\n"
    cut = ("ü" * 5_000).encode()
    assert read_one(name, cut).text == "ü" * 5_000


@pytest.mark.parametrize("data", [b"\x00\x01", b"\x7fELF\x01", b"a\x1b[0m\x01", bytes(range(128, 256))])
def test_other_bytes_with_an_unknown_suffix_are_passed_over(data: bytes) -> None:
    assert read_all("a.unknown", data) == ([], ["a.unknown: no reader"])
    assert read_all("a.svg", b"<svg></svg>")[1] == ["a.svg: no reader"]


@pytest.mark.parametrize("suffix", ["mdx", "qmd", "Rmd", "mkd", "mdown", "markdown"])
def test_the_kin_of_markdown(suffix: str) -> None:
    found = read_one(f"a.{suffix}", b"---\ntitle: M one\n---\n# H one\n\nText a.\n")
    assert (found.title, found.text) == ("M one", "# H one\n\nText a.\n")
    assert [value for value, _ in at(found, "heading")] == [["H one"]]


def test_a_notebook_keeps_its_error_and_what_a_terminal_shows() -> None:
    outputs = [
        {"output_type": "stream", "text": ["progress 1\r", "progress 2\r", "result 0.93\n", "x" * 3_000]},
        {
            "output_type": "error",
            "ename": "ValueError",
            "evalue": "bad shape",
            "traceback": ["\x1b[31mTraceback\x1b[0m"],
        },
    ]
    cell = {"cell_type": "code", "source": "f()", "outputs": outputs}
    text = read_one("a.ipynb", json.dumps({"cells": [cell]}).encode()).text
    assert text.startswith("f()\nresult 0.93\nxxx") and text.endswith("x\nTraceback\nValueError: bad shape")


def test_org_code_has_no_headings() -> None:
    text = b"* A\n  #+BEGIN_SRC py\n* no\n  #+END_SRC\n** B\n"
    assert headings("a.org", text) == [["A"], ["A", "B"]]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (
            "<p>The <e>inner</e> word stays, see <l href='x'>the map</l>.</p>",
            ["The inner word stays, see the map.", "l (href: x)"],
        ),
        ("<p><e>First</e> and last</p>", ["First and last"]),
        (
            "<p>10<sup>6</sup> litres of H<sub>2</sub>O, in 2019<superscript>3</superscript></p>",
            ["10^6 litres of H2O, in 2019[3]"],
        ),
        ("<p>Before <list><i>one</i><i>two</i></list> after</p>", ["Before", "i: one", "i: two", "after"]),
        ("<r><n>1</n></r><r><n>2</n></r>", ["n: 1", "n: 2"]),
        (
            "".join(f"<n>{n}</n>" for n in range(100)) + " tail <b>x</b>",
            [*(f"n: {n}" for n in range(100)), "tail", "b: x"],
        ),
    ],
)
def test_mixed_content_of_xml_is_one_sentence(body: str, lines: list[str]) -> None:
    assert read_one("a.xml", f"<?xml version='1.0'?><a>{body}</a>".encode()).text.splitlines() == lines
