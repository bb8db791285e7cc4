"""Questions in the first person: what the person wrote to an assistant comes before its replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index

MESSAGES = (
    "user: The first sprint should end on 14 March.",
    "assistant: A first sprint can end after two weeks. End the first sprint with a review.",
    "user: Which database fits a budget tracker?",
    "assistant: SQLite fits a small tracker.",
    "user: Add a column for notes to the transactions.",
    "assistant: Here is the migration with the column.",
)


@pytest.mark.parametrize(
    ("question", "first"),
    [("When does my first sprint end?", "user:"), ("When does the first sprint end?", "assistant:")],
)
def test_a_question_in_the_first_person_is_about_what_the_person_wrote(
    tmp_path: Path, question: str, first: str
) -> None:
    documents = [Document(f"message{at}", text) for at, text in enumerate(MESSAGES)]
    with Index.build(documents, tmp_path / "index") as index:
        [context] = index.retrieve_many([question], mode="walk", budgets=[1000])[0]
    assert context.passages[0].text.startswith(first)
