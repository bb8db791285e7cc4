"""Sentences quoted without a language model: which, and that they are the document's own words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.query.answer.quotes import MOST, best_sentences

TEXTS = {
    "fram": "The Fram was frozen in for years. 🙂 Her hull was drawn by Colin Archer. She had a mill.",
    "maud": "The Maud followed her in shape. She was built at Vollen by Christian Jensen. The queen came.",
    "gjoa": "The Gjøa was a small herring boat. She went through the passage. Nobody had done that before.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    documents = [Document(name, text, name.title()) for name, text in TEXTS.items()]
    return Index.build(documents, tmp_path_factory.mktemp("quotes") / "index")


def test_the_sentence_that_shares_the_rarest_words_comes_first(index: Index) -> None:
    answer = index.ask("Who drew the hull of the Fram?")
    assert answer.reason == "no_model"
    assert any("Colin Archer" in quote.text for quote in answer.quotes[:2])
    found = index.ask("Who built her at Vollen, Christian or Jensen?").quotes[0]
    assert found.text.startswith("She was built at Vollen")


def test_the_form_of_a_verb_and_the_type_of_answer_count(tmp_path: Path) -> None:
    """The sentence that answers has neither the verb as the question has it nor the name."""
    crean = (
        "Tom Crean was born on a farm in Kerry and enlisted in the Royal Navy as a boy. "
        "He was on another warship when the Discovery came, and volunteered. "
        "He went south with Scott, and again with Shackleton. "
        "He retired in 1920 and opened a public house. "
        "He hardly ever spoke of his travels, and died in Cork in 1938. "
        "The house is still there."
    )
    with Index.build([Document("crean", crean, "Tom Crean")], tmp_path / "index") as index:
        for question in ("Where did Tom Crean die?", "When did Tom Crean die?"):
            quotes = index.ask(question).quotes
            assert len(quotes) == 2 and any("died in Cork" in quote.text for quote in quotes), question


def test_the_best_passages_are_quoted_although_others_share_words(index: Index) -> None:
    """The second passage of a chain shares no word with the question; five others share a rare one each."""
    rare = ("harpoon", "telescope", "barometer", "sextant", "chronometer")
    texts = ["The Maud was a ship.", "It lies in the fjord.", *[f"Here is one {word}." for word in rare]]
    context = index.retrieve("Which boat was the Gjøa?")
    first = context.passages[0]
    passages = tuple(
        replace(first, rank=rank, title="", text=text, start=0, end=len(text))
        for rank, text in enumerate(texts, 1)
    )
    question = f"Where is the Maud: {', '.join(rare)}?"
    quotes = best_sentences(replace(context, question=question, passages=passages))
    assert [quote.number for quote in quotes][:1] == [1]
    assert 2 in [quote.number for quote in quotes]
    assert len(best_sentences(replace(context, question=question, passages=passages), 7)) == 7


def test_quotes_are_the_words_of_their_documents(index: Index) -> None:
    answer = index.ask("Who built the ships?")
    assert 1 <= len(answer.quotes) <= MOST
    for quote in answer.quotes:
        assert TEXTS[quote.document][quote.start : quote.end] == quote.text
        assert answer.context.passages[quote.number - 1].document == quote.document
    numbers = [quote.number for quote in answer.quotes]
    assert max(numbers.count(number) for number in numbers) <= 2


def test_the_same_question_gives_the_same_quotes(index: Index) -> None:
    context = index.retrieve("Which ship went through the passage?")
    assert best_sentences(context) == best_sentences(context)
    assert [quote.text for quote in best_sentences(context, 1)] == [best_sentences(context)[0].text]


def test_an_answer_that_a_model_could_give_has_no_quotes_without_passages(tmp_path: Path) -> None:
    with Index.build([Document("a", "Something else entirely.")], tmp_path / "index") as index:
        answer = index.ask("zzzz", mode="bm25")
        assert (answer.quotes, answer.context.passages) == ((), ())


def test_json(index: Index) -> None:
    told = index.ask("Who built the Maud at Vollen?").to_json()
    first = told["quotes"][0]
    assert set(first) == {"number", "text", "document", "start", "end"}
    assert TEXTS[first["document"]][first["start"] : first["end"]] == first["text"]
