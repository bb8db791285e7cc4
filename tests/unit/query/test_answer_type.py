"""The type of answer that a question asks for, and sentences that contain one."""

from __future__ import annotations

import pytest

from ketrag_fast.query.answer.answer_types import AnswerType, answer_type, contains_type


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("When was the Fram built?", "time"),
        ("In what year did she sail?", "time"),
        ("How many dogs were there?", "number"),
        ("What is the population of Vollen?", "number"),
        ("Where did Tom Crean die?", "location"),
        ("In which Norwegian town was she built?", "location"),
        ("Who drew her hull?", "name"),
        ("Whose ship was the Maud?", "name"),
        ("What is a pemmican?", None),
        ("How does the mill work?", "manner"),
        ("Wo starb Tom Crean?", None),
        ("Wann starb Tom Crean?", "time"),
        ("Сколько собак было на борту?", "number"),
        ("船上有多少只狗？", "number"),
        ("كم عدد الكلاب؟", "number"),
        ("", None),
    ],
)
def test_the_type_of_a_question(question: str, wanted: AnswerType | None) -> None:
    assert answer_type(question) == wanted


@pytest.mark.parametrize(
    ("wanted", "sentence", "contained"),
    [
        ("time", "She sailed in 1893.", True),
        ("time", "She sailed in June.", True),
        ("time", "She sailed with 13 men.", False),
        ("number", "She had 13 men.", True),
        ("number", "There were three masts.", True),
        ("number", "There were masts.", False),
        ("location", "He died in Cork.", True),
        ("location", "He died in the city of Cork.", True),
        ("location", "He died in his bed.", False),
        ("name", "Her hull was drawn by Colin Archer.", True),
        ("name", "The Fram was drawn by someone.", False),
        ("name", "Somebody drew her.", False),
        ("manner", "It works with the wind.", True),
        ("time", "We meet at 14:30.", True),
    ],
)
def test_sentences_that_contain_a_type(wanted: AnswerType, sentence: str, contained: bool) -> None:
    assert contains_type(wanted, sentence, "Who drew the hull of the Fram?") is contained
