"""The mode `survey`: excerpts of many documents by theme."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from ketrag_fast import Context, Document, Index, Settings
from ketrag_fast.kernels import count_tokens
from ketrag_fast.query.survey import OTHERS, _runs, _water_level
from tests.unit.query.themes.test_describe import BREAD, SHIPS, STARS, library, text_about

QUESTION = "Which things were repaired, and what was needed?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.build(library(40), tmp_path_factory.mktemp("survey") / "index") as built:
        yield built


def documents_of(context: Context) -> set[str]:
    return {passage.document for passage in context.passages}


def test_a_survey_has_excerpts_of_more_documents_than_other_modes(tmp_path: Path) -> None:
    long = [
        Document(str(at), "\n\n".join(text_about(words, 50 * at + part) for part in range(4)))
        for at, words in enumerate([SHIPS, BREAD, STARS] * 10)
    ]
    with Index.build(long, tmp_path / "index") as built:
        surveyed = built.retrieve(QUESTION, mode="survey", budget=2000)
        others = built.retrieve(QUESTION, mode="walk", budget=2000)
    assert len(documents_of(surveyed)) > 1.3 * len(documents_of(others))


def test_excerpts_are_text_of_the_documents(index: Index) -> None:
    texts = {document.id: document.text for document in library(40)}
    for budget in (100, 1000, 5000):
        for passage in index.retrieve(QUESTION, mode="survey", budget=budget).passages:
            assert texts[passage.document][passage.start : passage.end] == passage.text
            assert passage.text == passage.text.strip()


@pytest.mark.parametrize("budget", [0, 1, 20, 60, 150, 400, 1500, 20_000])
def test_the_budget_is_kept(index: Index, budget: int) -> None:
    context = index.retrieve(QUESTION, mode="survey", budget=budget)
    assert context.tokens <= budget
    assert int(count_tokens([context.text])[0]) <= budget
    assert (context.reason is None) == bool(context.passages)
    if budget >= 150:
        assert context.tokens > budget / 3 or budget > 5000


def test_headings_are_themes_and_marks_lead_to_passages(index: Index) -> None:
    context = index.retrieve(QUESTION, mode="survey", budget=3000)
    assert "".join(section.text for section in context.sections).rstrip() == context.text.rstrip()
    assert sum(section.tokens for section in context.sections) == context.tokens
    labels = [section.name for section in context.sections]
    assert len(labels) > 1
    for section in context.sections:
        assert section.text.startswith(f"## {section.name}\n\n")
    for passage in context.passages:
        (reason,) = passage.why
        section = context.sections[labels.index(reason["theme"])]
        assert f"[{passage.rank}]\n{passage.title}\n{passage.text}\n\n" in section.text
    assert [passage.rank for passage in context.passages] == list(range(1, len(context.passages) + 1))
    for label in set(labels) - {OTHERS}:
        words = set(label.split(", "))
        assert max(len(words & set(subject)) for subject in (SHIPS, BREAD, STARS)) > 0


def test_no_excerpt_repeats_another(tmp_path: Path) -> None:
    copies = [Document(f"copy/{at}", text_about(SHIPS, 3)) for at in range(20)]
    with Index.build([*library(5), *copies], tmp_path / "index") as index:
        context = index.retrieve("What was repaired?", mode="survey", budget=3000)
    texts = [set(passage.text.split()) for passage in context.passages]
    assert all(len(a & b) < 0.9 * len(a | b) for a, b in combinations(texts, 2))


def test_a_question_of_general_words_gets_the_themes_of_the_whole(index: Index) -> None:
    context = index.retrieve("What are these documents about?", mode="survey", budget=600)
    assert {section.name for section in context.sections} <= {theme.label for theme in index.themes().themes}
    assert {document.split("/")[0] for document in documents_of(context)} == {"ships", "bread", "stars"}
    part = index.retrieve(
        "Give an overview of the main topics", mode="survey", budget=600, filter="subject=bread"
    )
    assert {document.split("/")[0] for document in documents_of(part)} == {"bread"}


def test_a_question_of_general_words_in_an_index_of_two_languages(tmp_path: Path) -> None:
    german = "Der Bäcker hat gestern das Brot aus dem Ofen geholt, weil es nicht länger backen sollte. " * 3
    documents = [
        *library(12),
        *(Document(f"de/{at}.md", f"{german} Ofen {at} steht hier.") for at in range(9)),
    ]
    with Index.build(documents, tmp_path / "index") as built:
        labels = {theme.label for theme in built.themes().themes}
        context = built.retrieve("What are these documents about?", mode="survey", budget=600)
        assert built.stats()["languages"].keys() >= {"de", "en"}
    assert {section.name for section in context.sections} <= labels
    assert len(context.sections) == len(labels)


def test_filters_and_rights_hold(index: Index) -> None:
    for fields in ({"filter": "subject=bread"}, {"allow": "subject=bread"}):
        context = index.retrieve(QUESTION, mode="survey", budget=2000, **fields)  # type: ignore[arg-type]
        assert {document.split("/")[0] for document in documents_of(context)} == {"bread"}
    empty = index.retrieve(QUESTION, mode="survey", filter="subject=none")
    assert (empty.text, empty.reason) == ("", "nothing_fits_filter")


def test_the_number_of_passages_is_limited(index: Index) -> None:
    assert len(index.retrieve(QUESTION, mode="survey", top=3).passages) <= 3


def test_many_questions_and_budgets_give_what_single_ones_give(index: Index) -> None:
    questions = [QUESTION, "What was measured?", "What is this about?"]
    rows = index.retrieve_many(questions, mode="survey", budgets=[300, 900], threads=2)
    for question, row in zip(questions, rows, strict=True):
        for budget, context in zip((300, 900), row, strict=True):
            own = index.retrieve(question, mode="survey", budget=budget).to_json()
            assert {**context.to_json(), "timings_ms": {}} == {**own, "timings_ms": {}}


def test_the_same_bytes_on_any_number_of_threads(index: Index) -> None:
    first = {**index.retrieve(QUESTION, mode="survey").to_json(), "timings_ms": {}}
    for threads in (1, 2):
        with Index.open(index.path, settings=Settings(threads=threads)) as other:
            again = {**other.retrieve(QUESTION, mode="survey").to_json(), "timings_ms": {}}
            assert json.dumps(again) == json.dumps(first)


def test_nothing_to_survey(tmp_path: Path, index: Index) -> None:
    assert index.retrieve("zzzz qqqq", mode="survey").reason == "no_match"
    with Index.build([], tmp_path / "empty") as empty:
        for question in ("Which things?", "What is this about?"):
            context = empty.retrieve(question, mode="survey")
            assert (context.text, context.reason) == ("", "empty_index")


def test_without_a_model_an_answer_is_a_digest_by_theme(index: Index) -> None:
    answer = index.ask(QUESTION, mode="survey", budget=1500)
    assert answer.reason == "no_model"
    themes = {dict(answer.context.passages[quote.number - 1].why[0])["theme"] for quote in answer.quotes}
    assert len(themes) > 1
    for quote in answer.quotes:
        passage = answer.context.passages[quote.number - 1]
        start = quote.start - passage.start
        assert passage.text[start : start + len(quote.text)] == quote.text


def test_shares_sum_to_the_budget() -> None:
    relevance = [1 / (1 + rank / 10) for rank in range(60)]
    for budget in (100, 1000, 4000, 30_000):
        level = _water_level(relevance, budget)
        shares = [max(one * level - 40, 0) for one in relevance]
        used = [share for share in shares if share >= 10]
        assert sum(used) == pytest.approx(budget, rel=0.1)
    assert _water_level([1.0], 500) == 540


def test_runs_of_sentences() -> None:
    assert _runs([]) == []
    assert _runs([3, 4, 7]) == [(3, 4), (7, 7)]
