from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.query.answer.prompt import CitationReader


def read(text: str, passages: int = 5, step: int = 1) -> tuple[str, list[int], int]:
    reader = CitationReader(passages)
    parts = [reader.feed(text[at : at + step]) for at in range(0, len(text), step)]
    whole = "".join([*parts, reader.finish()])
    return whole, list(dict.fromkeys(map(int, re.findall(r"\[([0-9]{1,9})\]", whole)))), reader.removed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nansen [2].", ("Nansen [2].", [2], 0)),
        ("Nansen [2][1], twice [2].", ("Nansen [2][1], twice [2].", [2, 1], 0)),
        ("Nansen [1, 3].", ("Nansen [1][3].", [1, 3], 0)),
        ("Nansen [1;2 and 3].", ("Nansen [1][2][3].", [1, 2, 3], 0)),
        ("Nansen [2-4].", ("Nansen [2][3][4].", [2, 3, 4], 0)),
        ("Nansen [4–9].", ("Nansen [4][5].", [4, 5], 4)),
        ("Nansen [Passage 2].", ("Nansen [2].", [2], 0)),
        ("Nansen [9].", ("Nansen.", [], 1)),
        ("Nansen [0] [6], [7, 1].", ("Nansen, [1].", [1], 3)),
        ("Nansen [3-1].", ("Nansen.", [], 1)),
        ("Nansen [1-999999999].", ("Nansen [1][2][3][4][5].", [1, 2, 3, 4, 5], 80)),
        ("Nansen [sic] and [] and [1", ("Nansen [sic] and [] and [1", [], 0)),
        ("[[1]] a [ b [2]", ("[[1]] a [ b [2]", [1, 2], 0)),
        ("<think>is it [1]? [9]</think>\nNansen [2].", ("Nansen [2].", [2], 0)),
        ("<think>never ends [1]", ("", [], 0)),
        ("<thin air [1]", ("<thin air [1]", [1], 0)),
        ("", ("", [], 0)),
        ("x  ", ("x  ", [], 0)),
    ],
)
def test_citations_however_the_text_is_cut(text: str, expected: tuple[str, list[int], int]) -> None:
    for step in (1, 2, 3, 7, 1000):
        assert read(text, step=step) == expected


def test_what_comes_is_given_at_once() -> None:
    reader = CitationReader(2)
    assert reader.feed("Nansen ") == "Nansen"
    assert reader.feed("sailed [") == " sailed"
    assert reader.feed("1") == ""
    assert reader.feed("] the") == " [1] the"
    assert reader.feed(" [" + "x" * 90).endswith("x")


@given(st.text(alphabet=st.sampled_from("[]0123456789,-–; ab<>think/"), max_size=60), st.integers(0, 12))
def test_any_reply_cites_passages_that_are_there(text: str, passages: int) -> None:
    whole = read(text, passages, 1000)
    assert read(text, passages, 1) == read(text, passages, 3) == whole
    answer, cited, removed = whole
    assert all(1 <= number <= passages for number in cited)
    assert len(set(cited)) == len(cited)
    # With as many passages as any number can name, fewer numbers lead nowhere.
    assert removed >= read(text, 10**9, 1000)[2]
    assert {int(n) for n in re.findall(r"\[(\d{1,9})\]", answer)} <= set(cited)
