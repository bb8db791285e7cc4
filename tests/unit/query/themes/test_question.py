"""The rule that tells questions about the whole from others, on 60 questions, half of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast.query.themes.question import EXAMPLES, asks_about_the_whole

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data/questions/whole.jsonl").read_text("utf-8").splitlines()
]


def test_the_rule_finds_most_questions_about_the_whole_and_few_others() -> None:
    whole = [asks_about_the_whole(row["text"]) for row in ROWS if row["whole"]]
    others = [asks_about_the_whole(row["text"]) for row in ROWS if not row["whole"]]
    assert (len(whole), len(others)) == (30, 30)
    assert sum(whole) >= 25
    assert not any(others)


@pytest.mark.parametrize("question", EXAMPLES)
def test_examples_are_recognised(question: str) -> None:
    assert asks_about_the_whole(question)


@pytest.mark.parametrize("question", ["", "?", "Wer baute die Fram?", "\ud800", "x" * 10_000])
def test_odd_questions_are_not(question: str) -> None:
    assert not asks_about_the_whole(question)
