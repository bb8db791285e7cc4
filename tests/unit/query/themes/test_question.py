"""The rule that tells questions about the whole from others, on 60 questions, half of each kind."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from ketrag_fast.query.themes.question import EXAMPLES, READ, RULES, asks_about_the_whole

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


def test_rules_that_are_left_out_would_not_match() -> None:
    """Rules are compiled only for questions with one of their parts; the result is that of all rules."""
    whole = re.compile("|".join(pattern for _, pattern in RULES), re.IGNORECASE)
    texts = [*EXAMPLES, *(row["text"] for row in ROWS)]
    words = sorted({word for text in texts for word in text.split()})
    dice = random.Random(5)
    texts += [" ".join(dice.choices(words, k=dice.randint(3, 12))) for _ in range(3000)]
    texts += [re.sub(r"\W+", " ", pattern)[:READ] for _, pattern in RULES]
    matching = [text for text in texts if whole.search(text[:READ])]
    assert len(matching) > 500
    assert all(map(asks_about_the_whole, matching))


@pytest.mark.parametrize("question", EXAMPLES)
def test_examples_are_recognised(question: str) -> None:
    assert asks_about_the_whole(question)


@pytest.mark.parametrize("question", ["", "?", "OK", "Wer baute die Fram?", "\ud800", "x" * 10_000])
def test_odd_questions_are_not(question: str) -> None:
    assert not asks_about_the_whole(question)
