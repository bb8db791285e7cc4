"""What an answer of each form begins with, and how it is read."""

from __future__ import annotations

import pytest

from ketrag_fast.errors import ConfigError
from ketrag_fast.query.answer.prompt import FREE, INSTRUCTIONS, NOTHING, Form, form_of, instructions, ranking


@pytest.mark.parametrize(
    ("reply", "ranked"),
    [
        ("[c,a,d,b] because of the ice.", "cadb"),
        ("[ C ; A ]", "cabd"),
        ("The ranking is [b > a > d > c]. See [2].", "badc"),
        ("(b) is right, then (d).", "bdac"),
        ("Option C, I think", "cabd"),
        ("d", "dabc"),
        ("[a,a,z,b]", "abcd"),
        ("A ship is what it was. [1]", "abcd"),
        ("", "abcd"),
    ],
)
def test_a_ranking_has_every_option_once(reply: str, ranked: str) -> None:
    assert "".join(ranking(reply, 4)) == ranked


def test_a_decision_is_the_first_word_that_decides() -> None:
    decided = Form("yes-no")
    assert decided.decision("Yes, it was [1]. No doubt.") == "yes"
    assert decided.decision("**Maybe**") == "maybe"
    assert decided.decision("Nobody knows") is None
    assert (FREE.decision("Yes"), FREE.ranking("[a,b]")) == (None, None)


def test_what_a_model_is_told() -> None:
    assert instructions() == INSTRUCTIONS
    assert NOTHING in INSTRUCTIONS
    choice = form_of(None, ["one  ship", "two"])
    assert choice.question("Which?") == "Which?\n(a) one ship\n(b) two"
    assert "[c,a,d,b]" in instructions(choice)
    assert NOTHING not in instructions(choice)
    assert "Maybe" in instructions(form_of("yes-no", ()))
    assert form_of(None, ()) == FREE


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("choice", []),
        ("choice", ["one"]),
        ("yes-no", ["a", "b"]),
        ("essay", []),
        (None, ["a", " "]),
        (None, "ab"),
        (None, ["x"] * 27),
    ],
)
def test_forms_that_make_no_sense(kind: str | None, options: list[str]) -> None:
    with pytest.raises(ConfigError):
        form_of(kind, options)
