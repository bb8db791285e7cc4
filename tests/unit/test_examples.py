"""The example's articles and questions are what its README promises."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ketrag_fast.lab.eval.datasets import DataSet, Question, load_dataset
from ketrag_fast.lab.eval.metrics import coverage, is_yes_no, normalise

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
POLAR = EXAMPLES / "polar"


def entries() -> dict[str, tuple[str, str]]:
    lines = (POLAR / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["_id"]: (entry["title"], entry["text"]) for entry in map(json.loads, lines)}


ARTICLES = entries()
DATA: DataSet = load_dataset(POLAR)


def names(text: str, title: str) -> bool:
    return coverage(text, [title]) is True


# for each article the others that it mentions by the name of their subject
MENTIONS = {
    identity: {other for other, (title, _) in ARTICLES.items() if other != identity and names(text, title)}
    for identity, (_, text) in ARTICLES.items()
}


def connected(support: frozenset[str]) -> bool:
    """Whether mentions alone, in either direction, lead from each of these articles to every other."""
    todo = [min(support)]
    reached = set(todo)
    while todo:
        here = todo.pop()
        new = {there for there in support - reached if there in MENTIONS[here] or here in MENTIONS[there]}
        reached |= new
        todo.extend(new)
    return reached == support


def test_the_corpus_agrees_with_the_articles() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "make_dataset.py", "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(ARTICLES) == {path.name for path in (POLAR / "articles").iterdir()}


def test_there_are_enough_articles_and_questions() -> None:
    assert len(ARTICLES) >= 40
    assert len(DATA.questions) == 30
    assert len({title for title, _ in ARTICLES.values()}) == len(ARTICLES)
    hops = Counter(question.metadata["hops"] for question in DATA.questions)
    assert hops["2hop"] > hops["3hop"] > hops["4hop"] > 0
    assert sum(hops.values()) == hops["2hop"] + hops["3hop"] + hops["4hop"]


@pytest.mark.parametrize("identity", sorted(ARTICLES))
def test_an_article_is_short_and_mentions_others(identity: str) -> None:
    assert 120 <= len(ARTICLES[identity][1].split()) <= 350
    assert len(MENTIONS[identity]) >= 2


@pytest.mark.parametrize("question", DATA.questions, ids=lambda question: question.id)
def test_a_question_needs_its_supporting_articles(question: Question) -> None:
    support = {identity: ARTICLES[identity] for identity in question.gold}
    assert len(support) >= 2
    assert question.metadata["hops"] == f"{len(support)}hop"
    assert connected(question.gold)

    assert question.answers
    assert not is_yes_no(question.answers)
    assert coverage(question.text, question.answers) is False
    for answer in question.answers:
        assert any(names(text, answer) for _, text in support.values())

    named = {identity for identity, (title, _) in ARTICLES.items() if names(question.text, title)}
    assert set(support) - named, "a supporting article stays unnamed"
    for identity in named:  # looking up what the question names is never enough
        assert coverage(ARTICLES[identity][1], question.answers) is False


def test_judgements_name_articles_and_questions_that_exist() -> None:
    assert (DATA.unknown_passages, DATA.unknown_questions) == (0, 0)


def test_questions_are_varied() -> None:
    texts = [normalise(question.text) for question in DATA.questions]
    assert len(set(texts)) == len(texts)
    answers = Counter(normalise(question.answers[0]) for question in DATA.questions)
    assert max(answers.values()) == 1
    openings = Counter(text.split()[0] for text in texts)
    assert len(openings) >= 6
    assert openings.most_common(1)[0][1] <= 12
