"""The sentences of an answer as it streams, checked when they are complete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.query.answer.generation import AnswerChecker
from ketrag_fast.query.answer.grounding import Grounds
from ketrag_fast.query.answer.prompt import CitationReader
from tests.unit.query.test_grounding import CREAN, FRAM, passages


def read(text: str, step: int = 10_000) -> AnswerChecker:
    return checked(text, step)[1]


def checked(text: str, step: int = 10_000) -> tuple[str, AnswerChecker]:
    reader = CitationReader(2)
    checker = AnswerChecker(Grounds("", passages([{"text": CREAN}, {"text": FRAM}])))
    parts = [checker.feed(reader.feed(text[at : at + step])) for at in range(0, len(text), step)]
    return "".join([*parts, checker.feed(reader.finish()), checker.finish()]), checker


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Crean died in Cork.", "Crean died in Cork [1]."),
        ("Crean died in Cork [1].", "Crean died in Cork [1]."),
        ("Crean died in Cork. [1]", "Crean died in Cork. [1]"),
        ("Crean died in Cork [2].", "Crean died in Cork [1]."),
        ("Crean died in Cork. [2] The Fram was built by Colin Archer.", None),
        ("Crean died in Rome [1].", "Crean died in Rome [?]."),
        ("Crean [1] died in Rome", "Crean died in Rome [?]"),
        ("Crean died in Cork [?].", "Crean died in Cork [1]."),
        ('"Crean died in Cork."', '"Crean died in Cork." [1]'),
        (
            "- Crean died in Cork\n- Crean died in Rome\n",
            "- Crean died in Cork [1]\n- Crean died in Rome [?]\n",
        ),
        ("1. Crean died in Cork.\n2. Mr. Crean retired in 1920.", None),
        ("The facts are:\n\nCrean died in Cork.", "The facts are:\n\nCrean died in Cork [1]."),
        ("# Rome\n| Rome | 1 |\n```\nRome = 1\n```", "# Rome\n| Rome | 1 |\n```\nRome = 1\n```"),
        ("Yes. Crean died in Cork.", "Yes. Crean died in Cork [1]."),
        ("Insufficient information.", "Insufficient information."),
        ("===== 12 [1]\nWho died in Rome?", "===== 12 [1]\nWho died in Rome?"),
        ("The passages do not say where Wild died.", "The passages do not say where Wild died."),
        ("", ""),
    ],
)
def test_marks_however_the_text_is_cut(text: str, expected: str | None) -> None:
    whole = checked(text)[0]
    assert expected is None or whole == expected
    for step in (1, 2, 3, 7):
        assert checked(text, step)[0] == whole
        assert read(text, step).sentences == read(text).sentences


def test_each_sentence_and_its_citations() -> None:
    text = "Mr. Crean retired in 1920. He died in Rome [1]! The Fram was built by Colin Archer [2]"
    checker = read(text)
    assert [(one.text, one.citations, one.is_supported) for one in checker.sentences] == [
        ("Mr. Crean retired in 1920.", (1,), True),
        ("He died in Rome!", (), False),
        ("The Fram was built by Colin Archer", (2,), True),
    ]
    assert checker.cited == [1, 2]


def test_words_are_returned_at_once_and_the_end_of_a_sentence_with_its_marks() -> None:
    checker = AnswerChecker(Grounds("", passages([{"text": CREAN}])))
    assert checker.feed("Crean died ") == "Crean died"
    assert checker.feed("in Cork") == " in Cork"
    assert checker.feed(". ") == ""
    assert checker.feed("He") == " [1]. He"
    assert checker.feed(" died in Rome [1]") == " died in Rome"
    assert checker.finish() == " [?]"


def test_the_last_word_of_an_answer_that_is_cut_is_not_compared() -> None:
    for is_cut, mark in ((True, "[2]"), (False, "[?]")):
        checker = AnswerChecker(Grounds("", passages([{"text": CREAN}, {"text": FRAM}])))
        live = checker.feed("The Fram was built by Colin Archer. She drifted under Fridtjof Nans")
        assert live + checker.finish(is_cut=is_cut) == (
            f"The Fram was built by Colin Archer [2]. She drifted under Fridtjof Nans {mark}"
        )


def test_a_long_text_without_an_end_is_cut() -> None:
    text = "word " * 2000
    assert checked(text)[0].replace(" [?]", "").split() == text.split()
    assert len(read(text, 500).sentences) == 3


@given(st.text(alphabet=st.sampled_from('[]1?2.!:。 \nabC-"*|`#'), max_size=60))
def test_any_text_is_the_same_in_pieces(text: str) -> None:
    whole, checker = checked(text)
    for step in (1, 3):
        pieces, other = checked(text, step)
        assert (pieces, other.sentences, other.cited) == (whole, checker.sentences, checker.cited)
