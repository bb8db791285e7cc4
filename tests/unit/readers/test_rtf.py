"""RTF: text in any code page, headings, tables; without fonts, pictures, deleted and hidden text."""

from __future__ import annotations

import pytest

from tests.support.reading import at, read_all, read_one

LETTER = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss Arial;}{\f1\fcharset204 Arial Cyr;}
{\f2\fcharset128 Mincho;}}
{\colortbl;\red0\green0\blue0;}{\stylesheet{\s1 heading 1;}}
{\info{\title The letter}{\author R. Amundsen}{\*\userprops x}}
{\header Page 1}\pard\outlinelevel0 The ship\par
\pard The caf\'e9 \ldblquote Fram\rdblquote  cost 5\u8364?\emdash not more.\line Second line.\par
{\f1 \'cc\'ee\'f1\'ea\'e2\'e0} and {\f2 \'93\'8c\'8b\'9e}.\par
{\deleted gone}{\v hidden}{\*\unknown gone}Kept.\par
\pard\intbl Ship\cell Year\cell\row\intbl Fram\cell 1892\cell\row\pard
{\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt a link}}\par
\u55357?\u56832?{\uc2\u233 ab}\par}"""


def test_a_letter() -> None:
    found = read_one("a.rtf", LETTER)
    assert found.text.split("\n\n") == [
        "The ship",
        "The café “Fram” cost 5€—not more.\nSecond line.",
        "Москва and 東京.",
        "Kept.",
        "Ship\tYear\nFram\t1892",
        "a link",
        "😀é",
    ]
    assert (found.title, found.metadata) == ("The letter", {"author": "R. Amundsen"})
    assert at(found, "heading")[0][0] == ["The ship"]


@pytest.mark.parametrize("name", ["a.doc", "a", "a.txt"])
def test_whatever_it_is_called(name: str) -> None:
    assert read_one(name, LETTER).text.startswith("The ship")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{\\rtf1 }", "the document has no text"),
        (b"{\\rtf1 " + b"{" * 20_000, "nested more than"),
    ],
)
def test_bad_files(data: bytes, message: str) -> None:
    documents, failures = read_all("a.rtf", data)
    assert documents == []
    assert message in failures[0]


def test_what_is_not_read_is_reported() -> None:
    documents, failures = read_all(
        "a.rtf",
        rb"{\rtf1 Plan {\*\shppict{\pict\pngblip 89504e47}}{\nonshppict{\pict 0100}} and"
        rb" {\object\objemb{\*\objclass Excel.Sheet}{\*\objdata 0105}{\result the sum}}.}",
    )
    assert [one.text for one in documents] == ["Plan and the sum."]
    assert failures == ["a.rtf: not read: 1 picture; 1 embedded object"]


def test_headers_comments_and_text_boxes() -> None:
    found = read_one(
        "a.rtf",
        rb"{\rtf1{\header\pard Head Merlin\par}{\footer\pard Page 7\par}The price"
        rb"{\*\atnid I}{\*\atnauthor Ida}{\chatn{\*\annotation Too high.}} stays.\par"
        rb"{\shp{\*\shpinst\shpleft1{\sp{\sn a}{\sv 1}}{\shptxt In a box\par}}"
        rb"{\shprslt{\*\do{\dptxbxtext In a box\par}}}}\par}",
    )
    paragraphs = ["The price stays.", "In a box", "Head Merlin", "Comment by Ida: Too high."]
    assert found.text.split("\n\n") == paragraphs
    assert [part for part, _ in at(found, "part")] == ["header", "comment"]


def test_signs_of_the_fonts_symbol_and_wingdings() -> None:
    fonts = rb"{\fonttbl{\f0\fcharset0 Arial;}{\f3\fcharset2 Symbol;}{\f4\fcharset2 Wingdings;}}"
    text = rb"5 {\f3 m}m at 9 {\f3\'b0}C, \u-3920?F, {\f4\'fc} done"
    assert read_one("a.rtf", rb"{\rtf1" + fonts + text + rb"\par}").text == "5 μm at 9 °C, °F, ✓ done"


def test_damaged_files_are_read_as_far_as_they_go() -> None:
    data = b"{\\rtf1 \\f99 One\\par }}}} \\'zz two \\bin999999999 three"
    assert read_one("a.rtf", data).text.startswith("One")
