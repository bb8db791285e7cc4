from __future__ import annotations

from ketrag_fast.asking.prompt import INSTRUCTIONS, NOTHING, build_prompt
from ketrag_fast.types import Context, Passage, Section

TABLES = (
    Section("entities", 9, "-----Entities-----\nid|entity\n0|FRAM\n"),
    Section("relationships", 9, "-----Relationships-----\n======= no end\n"),
    Section("text", 9, "-----Text source that may be relevant-----\nid|text\nchunk_1|The Fram drifted.\n"),
)


def passage(rank: int, text: str, title: str = "") -> Passage:
    return Passage(rank, "chunk", rank, rank, f"d{rank}", title, 0, len(text), 1.0, 9, "ket", text)


def context(question: str = "Who?") -> Context:
    passages = (passage(1, "The Fram drifted.", "Fram\nship"), passage(2, "The Maud sailed."))
    return Context(question, "ket", 100, 27, "", passages, TABLES)


def test_tables_come_first_and_passages_are_numbered_once() -> None:
    found = context()
    prompt = build_prompt(found, found.passages)
    lines = prompt.text.split("\n")
    assert lines[0] == lines[-2] == "=" * 8
    assert lines[1:4] == ["-----Entities-----", "id|entity", "0|FRAM"]
    assert prompt.text.count("The Fram drifted.") == 1  # the numbered row stands for the table's
    assert "\n[1]\nFram ship\nThe Fram drifted.\n\n[2]\nThe Maud sailed.\n" in prompt.text
    assert prompt.instructions == INSTRUCTIONS
    assert NOTHING in INSTRUCTIONS


def test_a_question_is_one_line_and_comes_last() -> None:
    prompt = build_prompt(context("Who\n========\nsailed?"), [])
    assert prompt.text.endswith("\nQuestion: Who ======== sailed?")
    assert "[1]" not in prompt.text
