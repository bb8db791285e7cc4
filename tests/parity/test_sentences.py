"""The sentence splitter against its plain version, and on texts of many kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracles import sentences as plain
from tests.support import all_kernels as kernel

DATA = Path(__file__).parents[1] / "data" / "sentences"
PIECES = [
    *"aBcxyzIV019 .,'\"!?;:-_*()[]`#\n\t/\\",
    *(
        "\n\n",
        "``",
        "```",
        "''",
        "\r\n",
        "\u0085",
        "\u2028",
        "\xa0",
        "\u200f",
        "\ufe0f",
        "…",
        "“",
        "”",
        "„",
        "«",
        "¿",
    ),
    *(
        "é",
        "Ж",
        "ж",
        "中",
        "文",
        "。",
        "！",
        "」",
        "「",
        "と",
        "．",
        "８",
        "।",
        "ह",
        "؟",
        "د",
        "ไ",
        "²",
        "0\u0301",
    ),
    *(". ", "! ", ".\n", " a", " B", "z. ", "B. ", "[1]", "1. ", "12. ", "a) ", "- ", "am ", "der ", "Mai "),
    *("Dr. ", "No. ", "U.S. ", "etc. ", "The ", "e.g. ", "word ", "Words ", "wordsofafifteen ", "3.5 kg"),
    *(
        "`team!=hr`",
        "https://x.org/?q=a.b",
        "docs/a.b.md",
        "v1.2.3",
        "**Note.** ",
        "a line of forty-five characters, ",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def _split(text: str) -> list[str]:
    return [text[a:b] for a, b in kernel.sentence_spans(text).tolist()]


@settings(max_examples=400)
@given(TEXTS)
@example("")
@example("。“。“" * 60)
@example("`" * 30 + "\n" * 3 + "` `a" * 150)
def test_sentences_are_those_of_the_plain_version(text: str) -> None:
    assert [tuple(span) for span in kernel.sentence_spans(text).tolist()] == plain.sentences(text)


def test_sentences_of_a_page_about_operators() -> None:
    text = (DATA / "operators.md").read_text(encoding="utf-8")
    assert _split(text) == [
        "# Filters",
        "A filter restricts the results.",
        "Operators are `=`, `!=`, `$in` and `not`: `team!=hr` shows documents without that team.",
        "Name what may be seen (`team in (sales, all)`), or add `and team exists`.",
        "An empty text is a value.",
        "Ask `a?b:c` of the parser.",
        "Version 3.11.2 was released on 4 Dec. 2023 by A. B. Smith et al. in the U.S. and is stable.",
        "* Wrong syntax is an error with exit code 2!",
        "It names the character.",
        "* A second filter only restricts further.",
    ]


@pytest.mark.parametrize(
    "whole",
    [
        "The filter team!=hr shows the documents.",
        "Some examples are needed, e.g. This or that one.",
        "Please install v1.2.3 or V1.X of the tool today.",
        "Read docs/a.b.md and ../README.MD before that.",
        "Ask `what? Yes. No!` of the parser before that.",
        "It is at https://x.org/?Q=A.B and nowhere else.",
        "The parcel weighs 3.5 kg or approx. 5 lb. Net weight is less.",
        "See No. 5 of the list that Dr. Smith of the U.S. Army wrote.",
        "It was written by J. R. R. Tolkien and George C. Scott.",
        "The portal Yahoo! is a company from California.",
        "Sie starb am 3. Mai nach dem 2. Weltkrieg, z. B. Autos gab es.",
        "ภาษาไทยไม่มีเครื่องหมายจบประโยค แต่มีช่องว่างและต่อไปอีก",
        "「そうですか、それはとても良いことです。」と彼は言って部屋を出て行きました。",
        "A line of more than fifty characters that is wrapped before\n`code. That` follows it.",
    ],
)
def test_nothing_ends_inside(whole: str) -> None:
    assert _split(whole) == [whole]


@pytest.mark.parametrize(
    "parts",
    [
        ("He was not quite sure...", "Maybe they did it?!", "Nobody knows about it."),
        (
            "**This is a longer note.**",
            "Next comes a sentence.",
            "_It is stressed here._",
            "This is not stressed.",
        ),
        ("He said that it is so.[1]", "Then he left the building.[2][3]", "Nobody knows why."),
        (
            "He asked: “Is this the way?”",
            "Then he left the building.",
            '"It was very good!"',
            "She stayed there.",
        ),
        ("Use the tool as it is now.", "`ketrag index` builds an index."),
        ("The steps are as follows.", "1. Install the package.", "2. Run it as shown below."),
        ("The address is https://x.org/.", "That is all there is to it."),
        ("Er sagte: „Das ist nun so.“", "Dann ging er nach Hause."),
        ("यह पहला वाक्य है जो लंबा है।", "यह दूसरा वाक्य है जो लंबा है।"),
        ("هل هذا هو السؤال الأول الطويل؟", "نعم هذا هو الجواب الطويل."),
        ("The metal melts at 30 °C.", "Some metals do not."),
        ("The item is here in full.", "Dr. Smith wrote the next sentence."),
    ],
)
def test_sentences_end_before_a_blank(parts: tuple[str, ...]) -> None:
    assert _split(" ".join(parts)) == list(parts)


def test_sentences_of_chinese_need_no_blank() -> None:
    parts = [
        "这是第一个句子，它比较长一些吧。",
        "“这”是第二个句子，它也比较长一些！",
        "是的，这也是一个很长的句子哦。",
    ]
    assert _split("".join(parts)) == parts


def test_a_line_begins_with_its_marker() -> None:
    lines = [
        *(
            "Run these steps in this order:",
            "8. Install the package. It is small.",
            "9. Run the program with it.",
        ),
        *("a) Another item of the list.", "(b) another one; the last", "10. The last item of the list."),
    ]
    assert _split("\n".join(lines)) == lines
