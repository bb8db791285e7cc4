"""Sentences quoted without a language model: which, and that they are the document's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import InputError
from ketrag_fast.query.answer.passage_parts import parts_of
from ketrag_fast.query.answer.quotes import MOST, best_sentences
from ketrag_fast.types import Context

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
    assert found.text.startswith("The Maud followed her in shape. She was built at Vollen")


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
            assert ["died in Cork" in quote.text for quote in quotes] == [True], question
        quotes = index.ask("What did Tom Crean open?").quotes
        assert 1 <= len(quotes) <= 2, "at most two of a passage"
        assert any("opened a public house" in quote.text for quote in quotes)


def context_of(index: Index, question: str, rows: Sequence[tuple[float, str, str]]) -> Context:
    """A context of passages with these scores, titles and texts."""
    context = index.retrieve("Which boat was the Gjøa?")
    first = context.passages[0]
    passages = tuple(
        replace(first, rank=rank, score=score, title=title, text=text, start=0, end=len(text))
        for rank, (score, title, text) in enumerate(rows, 1)
    )
    return replace(context, question=question, passages=passages)


def test_the_best_passages_are_quoted_although_others_share_words(index: Index) -> None:
    """The second passage of a chain shares no word with the question; five others share a rare one each."""
    rare = ("harpoon", "telescope", "barometer", "sextant", "chronometer")
    rows = [(1.0, "", "The Maud was a ship."), (0.95, "", "It lies in the fjord.")]
    rows += [(0.5, "", f"Here is one {word}.") for word in rare]
    context = context_of(index, f"Where is the Maud: {', '.join(rare)}?", rows)
    assert sorted(quote.number for quote in best_sentences(context)[:2]) == [1, 2]


def test_passages_far_behind_the_best_one_are_not_quoted(index: Index) -> None:
    texts = ["They sailed on. They came home.", "The ice was thick. Seals were seen.", "Snow fell on it."]
    near = context_of(
        index, "Which sails of which harpoon?", [(1.0 - 0.01 * n, "", x) for n, x in enumerate(texts)]
    )
    assert [quote.text for quote in best_sentences(near, 5)] == texts, "neighbouring sentences are one quote"
    far = context_of(
        index, "Which sails of which harpoon?", [(1.0 - 0.5 * n, "", x) for n, x in enumerate(texts)]
    )
    assert [quote.number for quote in best_sentences(far)] == [1]
    equal = context_of(index, "Which?", [(0.5, "", f"Sentence {n}.") for n in range(9)])
    assert [quote.number for quote in best_sentences(equal, 7)] == list(range(1, 8))


def test_a_sentence_that_answers_alone_is_quoted_alone(index: Index) -> None:
    """It has the terms of the question and the type of answer; a part of the terms is not enough."""
    rows = [(1.0, "", "They sailed to the pole with the dogs."), (0.99, "", "Dogs sailed on it.")]
    question = "When had they sailed to the pole with dogs?"
    assert best_sentences(context_of(index, question, rows))[0].number == 1
    rows.append((0.98, "", "They sailed to the pole in 1911 with dogs."))
    assert [quote.number for quote in best_sentences(context_of(index, question, rows))] == [3]
    rows[2] = (0.98, "", "They were there in 1911.")
    assert len(best_sentences(context_of(index, question, rows))) > 1


def test_a_passage_that_another_one_leads_to_comes_first(index: Index) -> None:
    """The question names the first passage, which mentions the subject of the third; none has its terms."""
    rows = [
        (1.0, "Endurance", "The Endurance was led by Frank Worsley (sailor)."),
        (0.99, "Elephant Island", "Seals live there."),
        (0.98, "Frank Worsley (sailor)", "He was born in Akaroa."),
    ]
    quotes = best_sentences(
        context_of(index, "Its captain, of the Endurance, from the fjord in the north?", rows)
    )
    assert [quote.number for quote in quotes] == [3, 1, 2]


def test_scores_that_are_not_positive_give_ranks(index: Index) -> None:
    """A cross-encoder's scores are logits."""
    rows = [(score, "", f"Sentence {n}.") for n, score in enumerate((-0.5, -2.0, -9.0))]
    assert [quote.number for quote in best_sentences(context_of(index, "Which?", rows))] == [1, 2]
    rows = [(score, "", f"Sentence {n}.") for n, score in enumerate((6.0, 5.5, -9.0))]
    assert [quote.number for quote in best_sentences(context_of(index, "Which?", rows))] == [1, 2]


def test_quotes_are_the_words_of_their_documents(index: Index) -> None:
    answer = index.ask("Who built the ships?")
    assert 1 <= len(answer.quotes) <= MOST
    for quote in answer.quotes:
        assert TEXTS[quote.document][quote.start : quote.end] == quote.text
        assert answer.context.passages[quote.number - 1].document == quote.document
    numbers = [quote.number for quote in answer.quotes]
    assert max(numbers.count(number) for number in numbers) <= 2


def test_at_most_three_unless_more_are_asked_for(index: Index) -> None:
    texts = [f"They sailed on day {day}. They slept on day {day}." for day in range(6)]
    context = context_of(index, "Which sails?", [(1.0, "", text) for text in texts])
    assert [quote.number for quote in best_sentences(context)] == [1, 2, 3]
    assert [quote.number for quote in best_sentences(context, 5)] == [1, 2, 3, 4, 5]
    question = "Who went through the passage in the herring boat?"
    assert len(index.ask(question, quotes=1).quotes) == 1
    with pytest.raises(InputError, match="quotes must be from 1 to 100, got 0"):
        index.ask(question, quotes=0)


def test_equal_sentences_are_quoted_once_and_headings_never(index: Index) -> None:
    rows = [
        (1.0, "Log", "# Who sailed the Maud\n\nJensen sailed the Maud."),
        (0.9, "", "Jensen sailed the Maud!"),
    ]
    context = context_of(index, "Who sailed the Maud?", rows)
    assert [quote.text for quote in best_sentences(context)] == ["Jensen sailed the Maud."]


def test_a_row_is_quoted_with_its_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "\n".join(f"| item-{n} | {3 * n} | {1.5 * n} |" for n in range(9))
    text = f"# Stock\n\n| Name | Quantity | Price EUR |\n|---|---|---|\n{rows}\n"
    with Index.build([Document("stock.md", text)], tmp_path / "index") as index:
        answer = index.ask("What is the price of item-5?", quotes=1)
    (quote,) = answer.quotes
    assert quote.text == text[quote.start : quote.end] == "| item-5 | 15 | 7.5 |"
    assert quote.header == quote.to_json()["header"] == "| Name | Quantity | Price EUR |"
    assert main(["ask", "-i", str(tmp_path / "index"), "--quotes", "1", "What is the price of item-5?"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["| Name | Quantity | Price EUR |", "| item-5 | 15 | 7.5 | [1]"]


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


NOTES = [
    (1.0, "Thesis todo", "- [ ] ask Lindqvist about the third reader\n- [x] rerun table 3.4"),
    (
        0.6,
        "Mail",
        "Dear Thomas,\n\nI asked Abebe Tessema; he has agreed to be the third reader.\n\nBest wishes",
    ),
    (0.5, "Diary", "Who will be the third reader of the thesis? The bike had a flat tyre."),
]


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("Who will be the third reader of my thesis?", "I asked Abebe Tessema"),
        ("Who has agreed to read the thesis, dear Thomas?", "I asked Abebe Tessema"),
    ],
)
def test_a_statement_of_another_passage_is_before_tasks_greetings_and_questions(
    index: Index, question: str, start: str
) -> None:
    """The first passage has the best score, but only a task that resembles the question."""
    assert best_sentences(context_of(index, question, NOTES))[0].text.startswith(start)


def test_a_quote_has_the_sentences_around_it_up_to_450_characters_and_no_heading(index: Index) -> None:
    long = " ".join(f"Sentence number {n} tells of the ice and of the seals on it." for n in range(40))
    text = f"{long}\n\n# The ship\n\nThe Maud was built. It had a mill. Jensen drew it."
    quotes = best_sentences(context_of(index, "Who drew the Maud?", [(1.0, "", text)]), 1)
    assert [quote.text for quote in quotes] == ["The Maud was built. It had a mill. Jensen drew it."]
    question = "What does sentence number 20 tell of the seals?"
    (quote,) = best_sentences(context_of(index, question, [(1.0, "", long)]), 1)
    assert "Sentence number 20" in quote.text and 350 < len(quote.text) <= 450
    assert quote.text == long[quote.start : quote.end]


def test_a_row_with_named_values_and_a_line_of_a_chat_are_units(index: Index) -> None:
    """A period inside a row ends no sentence, and the lines of two speakers are two sentences."""
    text = "Ship: Fram; Built by: C. Archer; Year: 1892\nShip: Maud; Built by: Mr. Jensen; Year: 1916"
    parts = [text[part.start : part.end] for part in parts_of(text)]
    assert parts == text.splitlines()
    chat = "Time: Monday\nAnna: see you there\nBen: on the quay at noon"
    assert [chat[part.start : part.end] for part in parts_of(chat)] == chat.splitlines()


def test_a_sentence_with_what_the_question_asks_for_and_lacks_comes_first(index: Index) -> None:
    """Both sentences have a year; only the second has one that the question does not contain."""
    rows = [
        (1.0, "", "The ship of 1893 did not come home."),
        (0.9, "", "The ship of 1893 did come home in 1896."),
    ]
    context = context_of(index, "When did the ship of 1893 come home?", rows)
    assert best_sentences(context, 1)[0].number == 2


def test_the_noun_after_which_counts(index: Index) -> None:
    """The second sentence has fewer of the terms, but the one that says what is asked for."""
    rows = [
        (1.0, "", "The book by Nansen was written on the ice."),
        (0.9, "", "An award for the book came from the academy."),
    ]
    context = context_of(index, "Which award had the book by Nansen?", rows)
    assert best_sentences(context, 1)[0].number == 2


def test_a_sentence_that_answers_alone_is_before_those_that_the_links_lead_to(tmp_path: Path) -> None:
    """Other articles mention Tom Crean, and the links of these sentences lead to theirs."""
    articles = Path(__file__).parents[3] / "examples" / "polar" / "articles"
    with Index.build(articles, tmp_path / "index") as index:
        (quote,) = index.ask("Where did Tom Crean die?").quotes
    assert quote.text == "He hardly ever spoke of his travels, and died in Cork in 1938."
