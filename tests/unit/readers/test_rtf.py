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
{\deleted gone}{\v hidden}{\*\unknown gone}{\pict\pngblip 89504e47}Kept.\par
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


def test_damaged_files_are_read_as_far_as_they_go() -> None:
    data = b"{\\rtf1 \\f99 One\\par }}}} \\'zz two \\bin999999999 three"
    assert read_one("a.rtf", data).text.startswith("One")
