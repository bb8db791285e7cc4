"""The questions on technical documentation: complete, in two sets, and without the text of the documents."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

TRUTH = Path(__file__).parents[2] / "benches" / "truth" / "technical.json"


def test_the_questions_are_complete_and_quote_only_a_few_words() -> None:
    truth = json.loads(TRUTH.read_text("utf-8"))
    questions = truth["questions"]
    assert len({question["id"] for question in questions}) == len(questions)
    counts = Counter(question["set"] for question in questions)
    assert counts["development"] >= 100
    assert counts["aside"] >= 60
    passages = [passage for question in questions for passage in question["passages"]]
    assert {passage["file"] for passage in passages} == set(truth["files"])
    assert {name.split("/")[0] for name in truth["files"]} == {one["name"] for one in truth["packages"]}
    assert all(one["version"] and one["licence"] for one in truth["packages"])
    assert max(len(passage["words"].split()) for passage in passages) <= 15


def test_both_wordings_of_a_question_are_in_one_set() -> None:
    questions = {q["id"]: q for q in json.loads(TRUTH.read_text("utf-8"))["questions"]}
    for name, question in questions.items():
        if name.endswith("e"):
            plain = questions[name.removesuffix("e")]
            assert (question["set"], question["passages"]) == (plain["set"], plain["passages"])
