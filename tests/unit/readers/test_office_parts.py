"""Parts of Office files around their text: comments, headers, charts, formulas, and raised text."""

from __future__ import annotations

import io
import zipfile

import pytest

from tests.support.office_files import archive, docx, paragraph, pptx, rels, run, shape
from tests.support.reading import at, read_all, read_one
from tests.support.sheets import workbook

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="m"'
CHART = (
    "<c:chartSpace xmlns:c='c' xmlns:a='a'><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Paddlers per</a:t></a:r><a:r><a:t> season</a:t>"  # noqa: E501
    "</a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache>"
    '<c:pt idx="0"><c:v>2024</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache>'
    '<c:pt idx="0"><c:v>Spring</c:v></c:pt><c:pt idx="1"><c:v>Autumn</c:v></c:pt></c:strCache></c:strRef></c:cat>'  # noqa: E501
    '<c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>19</c:v></c:pt><c:pt idx="1"><c:v>42</c:v></c:pt>'
    "</c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"
)
CHART_TEXT = "Paddlers per season\n\n\t2024\nSpring\t19\nAutumn\t42"


def raised(text: str, kind: str = "superscript") -> str:
    return f'<w:r><w:rPr><w:vertAlign w:val="{kind}"/></w:rPr><w:t>{text}</w:t></w:r>'


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (run("holds 10") + raised("6") + run(" litres"), "holds 10^6 litres"),
        (run("since 2019") + raised("1") + raised("2") + run(" it"), "since 2019[12] it"),
        (run("H") + raised("2", "subscript") + run("O"), "H2O"),
        (run("The fee") + raised("1"), "The fee[1]"),
    ],
)
def test_raised_text_of_word(runs: str, text: str) -> None:
    assert read_one("a.docx", docx(f"<w:p>{runs}</w:p>")).text == text


def test_formulas_of_word() -> None:
    def letters(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    power = f"<m:sSup><m:e>{letters('10')}</m:e><m:sup>{letters('-6')}</m:sup></m:sSup>"
    fraction = f"<m:f><m:num>{letters('mλ')}</m:num><m:den>{letters('a')}</m:den></m:f>"
    root = f"<m:rad><m:deg/><m:e>{letters('x+1')}</m:e></m:rad>"
    total = f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{letters("i=1")}</m:sub><m:sup>{letters("n")}</m:sup><m:e>{letters("k")}</m:e></m:nary>'  # noqa: E501
    for inner, text in (
        (letters("sin\u2061θ=") + fraction, "sinθ = mλ/a"),
        (power, "10^-6"),
        (root, "√(x+1)"),
        (total, "∑_(i=1)^n k"),
    ):
        body = f"<w:p>{run('So ')}<m:oMath {M}>{inner}</m:oMath>{run(' holds.')}</w:p>"
        assert read_one("a.docx", docx(body)).text == f"So {text} holds."


def test_the_text_before_a_formula_of_too_many_levels_is_kept() -> None:
    deep = f"<m:oMath {M}>" + "<m:f><m:num>" * 5_000 + "</m:num></m:f>" * 5_000 + "</m:oMath>"
    documents, failures = read_all("a.docx", docx(f"<w:p>{run('Before.')}</w:p><w:p>{deep}</w:p>"))
    assert [one.text for one in documents] == ["Before."]
    assert failures == ["a.docx: word/document.xml: XML is nested more than 4,000 levels deep"]


def test_comments_headers_and_footers_of_word() -> None:
    parts = [
        ("h1", "header", "header1.xml"),
        ("h2", "header", "header2.xml"),
        ("f1", "footer", "footer1.xml"),
    ]
    members = {
        "word/_rels/document.xml.rels": rels(parts),
        "word/header1.xml": f"<w:hdr {W}>{paragraph('Doc-ID QX-88-1')}</w:hdr>",
        "word/header2.xml": f"<w:hdr {W}>{paragraph('Doc-ID QX-88-1')}{paragraph('Text.')}</w:hdr>",
        "word/footer1.xml": f"<w:ftr {W}>{paragraph('Page 1 of 3')}</w:ftr>",
        "word/comments.xml": f'<w:comments {W}><w:comment w:author="Ida">{paragraph("Harrier is wrong.")}'
        "</w:comment></w:comments>",
    }
    found = read_one("a.docx", docx(paragraph("Text."), **members))
    assert found.text == "Text.\n\nComment by Ida: Harrier is wrong.\n\nDoc-ID QX-88-1"
    assert at(found, "part") == [
        ("comments", "Comment by Ida: Harrier is wrong."),
        ("header", "Doc-ID QX-88-1"),
    ]


def test_charts_footers_and_comments_of_slides() -> None:
    slides = [shape(["Season"], "title") + shape(["Club"], "ftr"), shape(["Two"]) + shape(["Club"], "ftr")]
    parts = [("c", "chart", "../charts/chart1.xml"), ("k", "comments", "../comments/comment1.xml")]
    comment = '<p:cmLst xmlns:p="p"><p:cm><p:text>Check the count</p:text></p:cm></p:cmLst>'
    with zipfile.ZipFile(io.BytesIO(pptx(slides))) as package:
        members: dict[str, str | bytes] = {name: package.read(name) for name in package.namelist()}
    first = next(name for name, data in members.items() if b"Season" in data).rpartition("/")[2]
    members[f"ppt/slides/_rels/{first}.rels"] = rels(parts)
    members |= {"ppt/charts/chart1.xml": CHART, "ppt/comments/comment1.xml": comment}
    found = read_one("a.pptx", archive(members))
    assert found.text == f"Season\n\n{CHART_TEXT}\n\nComment: Check the count\n\nTwo\n\nClub"


def test_comments_and_charts_of_sheets() -> None:
    comments = (
        '<comments><authors><author>Ida</author></authors><commentList><comment ref="B2" authorId="0"><text><r>'  # noqa: E501
        '<t>Ida:</t></r><r><t>\nsupplier is Fjord</t></r></text></comment><comment ref="D9" authorId="0"><text>'  # noqa: E501
        "<t>alone</t></text></comment></commentList></comments>"
    )
    members = {
        "xl/worksheets/_rels/sheet1.xml.rels": rels(
            [("c", "comments", "../comments1.xml"), ("d", "drawing", "../drawings/drawing1.xml")]
        ),
        "xl/comments1.xml": comments,
        "xl/drawings/drawing1.xml": "<wsDr/>",
        "xl/drawings/_rels/drawing1.xml.rels": rels([("c", "chart", "../charts/chart1.xml")]),
        "xl/charts/chart1.xml": CHART,
    }
    documents, failures = read_all("a.xlsx", workbook({1: ("item", "qty"), 2: ("bolt", 4)}, more=members))
    assert failures == []
    assert [(one.id, one.text) for one in documents] == [
        ("a.xlsx/S#2", "item: bolt\nqty: 4\nComment on B2 by Ida: supplier is Fjord"),
        ("a.xlsx/S#D9", "Comment on D9 by Ida: alone"),
        ("a.xlsx/S#charts", CHART_TEXT),
    ]


def test_raised_text_of_rtf() -> None:
    rtf = rb"{\rtf1 The fee is 10{\super 6} kr in 2019{\super 1}{\super 2} and H{\sub 2}O, x{\up6 2\up0  y}.}"
    assert read_one("a.rtf", rtf).text == "The fee is 10^6 kr in 2019[12] and H2O, x^2 y."
