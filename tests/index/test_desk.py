"""Questions to a person's own notes, mail, sheets and papers: `ask` quotes the answer without a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings

DATA = Path(__file__).parents[1] / "data"
ROWS = [json.loads(line) for line in (DATA / "desk-questions.jsonl").read_text("utf-8").splitlines()]
LEFT = {
    "Who lives next door and is bothered by noise?": "it has none of the words of the note",
    "Who paid for the thermistor study?": "the note says funded",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("desk")
    shutil.copytree(DATA / "desk", folder / "files")
    with Index.build(folder / "files", folder / "index", settings=Settings(threads=1)) as index:
        yield index


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["question"])
def test_the_answer_is_quoted(desk: Index, row: dict[str, str]) -> None:
    answer = desk.ask(row["question"])
    found = any(row["answer"] in quote.text for quote in answer.quotes)
    assert found or row["question"] in LEFT, [quote.text for quote in answer.quotes]


def test_the_answer_is_in_the_first_five_passages(desk: Index) -> None:
    found = [any(row["answer"] in hit.text for hit in desk.search(row["question"], 5)) for row in ROWS]
    assert sum(found) >= len(ROWS) - 1


def test_a_quote_that_begins_with_a_pronoun_has_the_sentence_before_it(desk: Index) -> None:
    quotes = desk.ask("Who has agreed to be the third reader?").quotes
    assert quotes[0].text.startswith("I spoke with Henrik Saarinen in Turku yesterday. He has agreed")


def test_a_record_is_quoted_whole(desk: Index) -> None:
    texts = [quote.text for quote in desk.ask("Which book did I lend to Wei?").quotes]
    assert "book: Solenoid\nauthor: Cărtărescu\nlent to: Wei\nsince: 2026-02-28" in texts
