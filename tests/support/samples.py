"""A small good file of each kind that is read, made by code, and mutations of it."""

from __future__ import annotations

import gzip
import io
import random

import xlwt

from tests.support import binary_sheets
from tests.support.office_files import (
    archive,
    docx,
    epub,
    mail,
    odp,
    ods,
    ods_row,
    odt,
    paragraph,
    pptx,
    shape,
    text_row,
    word_table,
    xlsx,
)
from tests.support.outlook_files import message, winmail
from tests.support.pdf_files import Page, pdf


def workbook() -> bytes:
    """A workbook of Excel 97."""
    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    for row, cells in enumerate([("a", "b"), ("x", 7042), ("y", True)]):
        for column, cell in enumerate(cells):
            sheet.write(row, column, cell)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def samples() -> dict[str, bytes]:
    """By name."""
    page = Page().text(60, 80, "A title", 16)
    for n in range(12):
        page.text(60, 120 + 13 * n, f"left line {n} of text").text(
            310, 120 + 13 * n, f"right line {n} of text"
        )
    html = "<h1>T</h1><p>Some <a href=x>text</a>.</p><table><tr><td>a<td>b</table><pre>x\n y</pre>"
    body = (
        paragraph("T", "Titel") + paragraph("H", "Ueber1") + paragraph("text") + word_table([["a", "b"]] * 3)
    )
    inner = {"notes.md": b"# N\n\ntext", "in.zip": archive({"a.txt": "x"})}
    return {
        "a.pdf": pdf(
            [page, Page(image=True), page], outline=[(0, 0, "One"), (1, 2, "Two")], info={"Title": "T"}
        ),
        "a.html": f"<html><head><title>t</title><meta charset=utf-8></head><body>{html * 3}</body>".encode(),
        "a.docx": docx(body),
        "a.pptx": pptx([shape(["T"], "title") + shape(["a", "b"]), shape(["c"])], {1: "note"}),
        "a.xlsx": xlsx(
            {"S": [text_row(1, "a", "b"), '<row r="2"><c r="A2" t="s"><v>0</v></c></row>']}, ["x"]
        ),
        "a.xls": workbook(),
        "a.msg": message(),
        "a.tnef": winmail(),
        "a.odt": odt('<text:h text:outline-level="1">H</text:h><text:p>text</text:p>'),
        "a.xlsb": binary_sheets.sample(),
        "a.ods": ods([ods_row("a", "b"), ods_row("x", ("7042", "07042")), ods_row("y", "2")]),
        "a.odp": odp(["one", "two"], {1: "note"}),
        "a.epub": epub([html, "<h2>U</h2><p>more</p>"]),
        "a.eml": mail("Text.\n> old\n", html="<p>x</p>", attached=inner),
        "a.mbox": b"From a@b Mon May  6 07:08:09 2024\n" + mail("one") + b"\nFrom c@d x\n" + mail("two"),
        "a.json": b'{"a": [1, {"b": "c"}], "title": "t", "d": null}',
        "a.xml": b'<?xml version="1.0" encoding="utf-8"?><a x="1"><b>text</b><c>more <d>deep</d></c></a>',
        "a.zip": archive({"b.md": "# T\n\ntext", "c.docx": docx(body), "d.html": html}),
        "a.txt.gz": gzip.compress(b"some packed text", mtime=0),
        "a.py": b"class A:\n    def b(self):\n        return 1\n\ndef c(): pass\n",
        "a.rs": b"struct S { a: u32 }\nimpl S { fn f(&self) -> u32 { 1 } }\n",
        "a.cpp": b"namespace n { class A { int f() { return 1; } }; }\nint g(int x) { return x; }\n",
        "a.ts": b"export class A { b(): number { return 1 } }\nexport function c() {}\n",
        "a.md": b"---\ntitle: t\n---\n# A\n\n## B\n\n```\n# no\n```\ntext\n",
        "a.adoc": b"= T\n\n== A\n\n----\n== no\n----\n\n=== B\n\ntext\n",
        "a.org": b"#+TITLE: T\n* A\ntext\n** B\nmore\n",
        "a.tex": b"\\title{T}\n\\section{A $x$}\ntext\n\\subsection*{B}\\label{b}\nmore\n",
        "a.1": b'.\\" x\n.TH LS 1\n.SH NAME\nls \\- list\n.TP\n.B \\-a\nall \\(bu \\fIx\\fR\n.nf\na\n b\n.fi\n',  # noqa: E501
        "a.ipynb": b'{"cells": [{"cell_type": "markdown", "source": ["# T\\n", "text"]}, {"cell_type": "code",'  # noqa: E501
        b' "source": "x", "outputs": [{"text": ["1"]}, {"data": {"text/plain": "2"}}]}]}',
        "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\n<i>One</i>\ntwo.\n\n2\n00:00:03,000 --> 00:00:04,000\nThree.\n",  # noqa: E501
        "a.rtf": b"{\\rtf1\\ansi{\\fonttbl{\\f0\\fcharset204 A;}}{\\info{\\title T}}\\f0 One\\par\\intbl a\\cell b\\cell\\row\\u233?\\'e9}",  # noqa: E501
        "a.mht": b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=B\n\n"
        + b"--B\nContent-Type: text/html\n\n"
        + f"<html><head><title>t</title></head><body>{html * 3}</body></html>\n--B--\n".encode(),
        "a.ics": b"BEGIN:VEVENT\nSUMMARY:a\nDTSTART:20260101\nDESCRIPTION:b\\n\n c\nEND:VEVENT\n",
        "a.vcf": b"BEGIN:VCARD\nFN:Ann\nN;ENCODING=QUOTED-PRINTABLE:=C3=BC=\nx;A\nTEL:1\nNOTE:n\nEND:VCARD\n",
        "a.rss": b"<rss><channel><item><title>T</title><description>&lt;p&gt;text</description></item></channel></rss>",  # noqa: E501
        "a.enex": b"<en-export><note><title>T</title><content>&lt;b&gt;x</content><resource><data>eA==</data></resource></note></en-export>",  # noqa: E501
        "a.opml": b'<opml><head><title>T</title></head><body><outline text="a"><outline text="b"/></outline></body></opml>',  # noqa: E501
        "a.rst": b"=\nA\n=\n\nB\n---\n\n:x: y\n",
    }


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few changes: bits, bytes, cut, doubled or moved stretches, large numbers."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        if not out:
            return b""
        at = chance.randrange(len(out))
        length = min(chance.choice((1, 2, 8, 64, 512)), len(out) - at)
        match chance.randrange(7):
            case 0:
                out[at] ^= 1 << chance.randrange(8)
            case 1:
                out[at : at + length] = chance.randbytes(length)
            case 2:
                del out[at : at + length]
            case 3:
                out[at:at] = out[at : at + length] * chance.choice((1, 3, 50))
            case 4:
                del out[at:]
            case 5:
                out[at:at] = chance.choice(
                    (b"999999999", b"-1", b"\0\0\0\0", b"\xff\xff\xff\xff", b"<", b"(", b">>")
                )
            case _:
                other = chance.randrange(len(out))
                out[at : at + length] = out[other : other + length]
    return bytes(out)
