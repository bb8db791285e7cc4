"""Office files, books, mails: text, places in them, and what is refused."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from tests.support.office_files import (
    archive,
    docx,
    epub,
    mail,
    odt,
    paragraph,
    pptx,
    run,
    shape,
    text_row,
    word_table,
    xlsx,
)
from tests.support.parts import part
from tests.support.reading import at, read_all, read_one

BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


def test_docx() -> None:
    body = "".join(
        [
            paragraph("The Report", "Titel"),
            paragraph("Aims", "Ueber1"),
            "<w:p>"
            + run("We ")
            + "<w:del><w:r><w:delText>never </w:delText></w:r></w:del>"
            + run("count.")
            + "</w:p>",
            paragraph("Costs", "Own"),
            word_table([["Name", "Sum"], ["Ann", "5"], ["Bob", "7"]]),
            "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>first</w:t></w:r></w:p>",
            "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>second</w:t></w:r></w:p>",
            "<w:p><w:r><w:lastRenderedPageBreak/><w:t>On the next page.</w:t></w:r></w:p>",
        ]
    )
    found = read_one("a.docx", docx(body))
    assert found.text == (
        "The Report\n\nAims\n\nWe count.\n\nCosts\n\n"
        "Name\tSum\nAnn\t5\nBob\t7\nfirst\nsecond\n\nOn the next page."
    )
    assert found.title == "The Report"
    assert found.metadata == {"author": "Ann Author", "date": "2024-05-06T07:08:09Z"}
    assert [value for value, _ in at(found, "heading")] == [["Aims"], ["Aims", "Costs"]]
    assert at(found, "page")[1] == (2, "On the next page.")
    assert at(found, "page")[0][1].endswith("second")


def test_a_long_table_is_one_block() -> None:
    rows = [["Name", "Remark"], *([f"Person {n}", "a remark of some length"] for n in range(100))]
    text = read_one("a.docx", docx(word_table(rows))).text
    assert text.split("\n") == ["\t".join(row) for row in rows]


def test_pptx() -> None:
    slides = [
        shape(["Welcome"], "ctrTitle") + shape(["to the talk"], "subTitle") + shape(["3"], "sldNum"),
        shape(["Risks"], "title") + shape(["ice", "fog"], "body"),
    ]
    found = read_one("a.pptx", pptx(slides, {2: "Speak slowly."}))
    assert found.text == "Welcome\n\nto the talk\n\nRisks\n\nice\nfog\n\nSpeak slowly."
    assert at(found, "slide") == [(1, "Welcome\n\nto the talk"), (2, "Risks\n\nice\nfog\n\nSpeak slowly.")]
    assert at(found, "part") == [("notes", "Speak slowly.")]
    assert [value for value, _ in at(found, "heading")] == [["Welcome"], ["Risks"]]
    assert found.metadata["slides"] == 2


def test_xlsx() -> None:
    rows = [
        text_row(2, "Name", "", "When", "At", "Paid"),
        '<row r="4"><c r="A4" t="s"><v>1</v></c><c r="B4"><v>12.5</v></c><c r="C4" s="1"><v>45418</v></c>'
        '<c r="D4" s="2"><v>0.5</v></c><c r="E4" t="b"><v>1</v></c></row>',
        '<row r="5"><c r="A5" t="str"><f>1+1</f><v>two</v></c></row>',
    ]
    documents, failures = read_all("a.xlsx", xlsx({"Sums": rows, "Empty": []}, ["zero", "one & more"]))
    assert failures == []
    assert [document.id for document in documents] == ["a.xlsx/Sums#4", "a.xlsx/Sums#5"]
    assert documents[0].text == "Name: one & more\ncolumn 2: 12.5\nWhen: 2024-05-06\nAt: 12:00\nPaid: TRUE"
    assert at(documents[0], "sheet") == [("Sums", documents[0].text)]
    assert at(documents[0], "cell")[0][0] == "A4:E4"
    assert documents[1].text == "Name: two"


def test_odt() -> None:
    body = (
        '<text:h text:outline-level="1">Part</text:h><text:p>One<text:s text:c="2"/>two<text:tab/>three'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>a note</text:p></text:note-body>"
        "</text:note>.</text:p><table:table><table:table-row><table:table-cell><text:p>a</text:p>"
        "</table:table-cell>"
        "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
        "<text:list><text:list-item><text:p>x</text:p></text:list-item></text:list>"
    )
    found = read_one("a.odt", odt(body))
    assert found.text == "Part\n\nOne two\tthree (a note).\n\na\tb\nx"
    assert found.title == "Letter"
    assert [value for value, _ in at(found, "heading")] == [["Part"]]


def test_epub() -> None:
    part("resiliparse", "documents")
    found = read_one(
        "a.epub", epub(["<h1>One</h1><p>It began.</p>", "<h1>Two</h1><h2>Deep</h2><p>It ended.</p>"])
    )
    assert found.text == "One\n\nIt began.\n\nTwo\n\nDeep\n\nIt ended."
    assert found.title == "The Book"
    assert found.metadata["author"] == "B. Writer"
    assert [value for value, _ in at(found, "part")] == ["OPS/text/c1.xhtml", "OPS/text/c2.xhtml"]
    assert [value for value, _ in at(found, "heading")] == [["One"], ["Two"], ["Two", "Deep"]]


def test_mail() -> None:
    text = "Dear Bob,\n\nit is done.\n\nOn Monday Bob wrote:\n" + "> old words\n" * 9 + "\nAnn\n"
    data = mail(
        text, html="<p>not this</p>", attached={"notes.md": b"# Notes\n\nattached text\n", "a.bin": b"\0\1"}
    )
    documents, failures = read_all("a.eml", data)
    assert failures == ["a.eml/a.bin: no reader for .bin files"]
    message, notes = documents
    assert message.title == "Quarterly figures"
    assert message.text == "Dear Bob,\n\nit is done.\n\nOn Monday Bob wrote:\n[9 quoted lines]\n\nAnn"
    assert message.metadata == {
        "from": "Ann <ann@example.org>",
        "to": "bob@example.org",
        "message_id": "<1@example.org>",
        "date": "2024-05-06T07:08:09+02:00",
        "attachments": ["notes.md", "a.bin"],
    }
    assert at(message, "part") == [("body", message.text)]
    assert (notes.id, notes.title) == ("a.eml/notes.md", "Notes")


def test_mbox() -> None:
    one = mail("first message\n>From here on").replace(b"\n>From", b"\n>From")
    data = (
        b"From a@b Mon May  6 07:08:09 2024\n"
        + one
        + b"\nFrom a@b Mon May  6 07:09:09 2024\n"
        + mail("second")
    )
    for name in ("a.mbox", "mails.txt"):
        documents, failures = read_all(name, data)
        assert failures == []
        assert [document.id for document in documents] == [f"{name}:1", f"{name}:2"]
        assert "From here on" in documents[0].text


def test_locations_of_attachments() -> None:
    inner = mail("The inner text.", attached={"deep.md": b"# Deep\n\ntext\n"})
    data = mail("The text.", attached={"notes.md": b"# Notes\n\nattached text\n", "inner.eml": inner})
    documents, failures = read_all("a.eml", data)
    assert failures == []
    found = {document.id: [value for value, _ in at(document, "attachment")] for document in documents}
    assert found == {
        "a.eml": [],
        "a.eml/notes.md": ["notes.md"],
        "a.eml/inner.eml": ["inner.eml"],
        "a.eml/inner.eml/deep.md": ["inner.eml/deep.md"],
    }
    assert [value for value, _ in at(documents[0], "part")] == ["body"]


def test_text_of_a_mail_in_an_encoding_that_is_not_declared() -> None:
    text = "Москва основана в 1147 году князем Юрием Долгоруким."
    found = read_one("a.eml", b"From: a@b.c\nTo: d@e.f\nSubject: x\n\n" + text.encode("koi8-r"))
    assert (found.text, found.metadata["encoding"]) == (text, "koi8-u")
    assert at(found, "encoding") == [("koi8-u", text)]


def test_a_mail_with_very_many_parts() -> None:
    parts = "".join(f"--x\nContent-Type: text/plain\n\npart {n}\n" for n in range(10_000))
    head = "From: a@b\nTo: b@c\nSubject: many\nContent-Type: multipart/mixed; boundary=x\n\n"
    data = f"{head}{parts}--x--\n".encode()
    documents, failures = read_all("a.eml", data)
    assert "part 999" in documents[0].text
    assert "part 1000" not in documents[0].text
    assert "more than 1,000 parts" in failures[0]


def test_json_and_xml() -> None:
    found = read_one(
        "a.json", b'{"title": "T", "a": 1, "b": {"c": [1, "x"], "d": null}, "e": [{"f": 2.5}, {"f": 3}]}'
    )
    assert found.text == "title: T\na: 1\n\nd: null\n\nc: 1, x\n\nf: 2.5\n\nf: 3"
    assert at(found, "path")[-1] == ("$.e[1]", "f: 3")
    assert found.title == "T"
    records, _ = read_all("a.json", b'[{"_id": "x", "text": "one"}, {"text": "two"}]')
    assert [(record.id, record.text) for record in records] == [("x", "one"), ("a.json:2", "two")]
    found = read_one(
        "a.xml", b'<?xml version="1.0"?><book id="7"><title>B</title><p>one <b>bold</b> two</p></book>'
    )
    assert found.text == "book (id: 7)\ntitle: B\none bold two"
    assert found.title == "B"
    assert ("/book/p", "one bold two") in at(found, "path")


def test_archives() -> None:
    inner = archive({"deep.txt": "deep text", "skip.bin": b"\0\1"})
    data = archive({"b/two.md": "# Two\n\ntext", "a.txt": "one", "in.zip": inner, ".hidden.txt": "no"})
    documents, failures = read_all("x.zip", data)
    assert failures == ["x.zip/.hidden.txt: hidden", "x.zip/in.zip/skip.bin: no reader for .bin files"]
    assert [one.id for one in documents] == ["x.zip/a.txt", "x.zip/b/two.md", "x.zip/in.zip/deep.txt"]
    assert read_one("a.txt.gz", gzip.compress(b"packed text")).id == "a.txt.gz"
    nested = archive({"a.txt": "x"})
    for _ in range(5):
        nested = archive({"n.zip": nested})
    documents, failures = read_all("x.zip", nested)
    assert documents == []
    assert "more than 3 levels" in failures[0]


def test_names_that_lead_out_of_an_archive() -> None:
    documents, failures = read_all(
        "x.zip", archive({"../../etc/a.txt": "no", "/b.txt": "no", "c.txt": "yes"})
    )
    assert [one.id for one in documents] == ["x.zip/c.txt"]
    assert len(failures) == 2
    assert all("outside the archive" in why for why in failures)


def test_bombs_are_not_unpacked() -> None:
    zeros = b" " * 25_000_000
    assert "zip bomb" in read_all("x.zip", archive({"a.txt": zeros}))[1][0]
    assert "bomb" in read_all("a.txt.gz", gzip.compress(zeros))[1][0]
    assert "zip bomb" in read_all("a.docx", docx("", **{"word/document.xml": b"<w>" + zeros}))[1][0]


@pytest.mark.parametrize("head", [BOMB, OUTSIDE])
def test_entities_of_office_files_are_never_read(head: str) -> None:
    bad = docx("", **{"word/document.xml": f"{head}<w:document xmlns:w='w'>&a;</w:document>"})
    documents, failures = read_all("a.docx", bad)
    assert documents == []
    assert "entity declarations" in failures[0]


def test_kinds_are_found_by_content() -> None:
    assert read_one("a.txt", docx(paragraph("inside"))).text == "inside"
    assert read_one("a.pdf", b"only a text").text == "only a text"
    assert read_one("noname", odt("<text:p>x</text:p>")).text == "x"
    documents, failures = read_all("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert documents == []
    assert "save it as .docx" in failures[0]
    locked = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le")
    assert "password" in read_all("a.docx", locked)[1][0]


def test_an_encrypted_archive() -> None:
    data = bytearray(archive({"a.txt": "secret"}))
    out = io.BytesIO(bytes(data))
    info = zipfile.ZipFile(out).infolist()[0]
    data[info.header_offset + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "password" in read_all("x.zip", bytes(data))[1][0]


def test_code() -> None:
    part("tree_sitter_python", "code")
    text = (
        "import os\n\nclass Ship:\n    def sail(self):\n        return 1\n\n@wraps\ndef älter():\n    pass\n"
    )
    found = read_one("src/a.py", text.encode())
    assert found.text == text
    assert [value for value, _ in at(found, "symbol")] == [["Ship"], ["Ship", "sail"], ["älter"]]
    assert at(found, "symbol")[2][1] == "@wraps\ndef älter():\n    pass"
    assert [(one.kind, one.start, one.end, one.value) for one in found.locators if one.kind != "symbol"] == [
        ("code", 0, len(text), 0),
        ("lines", 0, len(text), 1),
    ]
    assert found.title == "a.py"
