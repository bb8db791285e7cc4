"""Filters in every mode: only what fits is returned, and nothing that fits is lost."""

from __future__ import annotations

import re

import pytest

from ketrag_fast import Document, Index, Settings
from tests.index.test_filters import QUESTION, documents

RANKED = ("bm25", "text", "knn", "cg-rag", "keyword")
"""Their filtered list is the whole one without the others."""
ALL = (
    *RANKED,
    "fused",
    "walk",
    "survey",
    "skeleton",
    "ket",
    "g2cons",
    "noderag",
)


def marked() -> list[Document]:
    """Each with a word that no other has."""
    return [Document(d.id, f"{d.text} Mark zq{d.id}.", d.title, d.metadata) for d in documents()]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    settings = Settings(llm="heuristic", modes="all")
    return Index.build(marked(), tmp_path_factory.mktemp("modes") / "ix", settings=settings)


def fitting(lang: str, year: int) -> set[str]:
    found = {d.id for d in documents() if d.metadata["lang"] == lang and int(d.metadata["year"]) >= year}
    assert found
    return found


def test_these_are_all_modes(index: Index) -> None:
    served = {mode for mode, lack in index._opened.missing.items() if lack is None}
    assert served == set(ALL)


@pytest.mark.parametrize("mode", ALL)
@pytest.mark.parametrize(("lang", "year"), [("en", 1880), ("de", 1925), ("no", 1939)])
def test_only_what_fits_is_returned(index: Index, mode: str, lang: str, year: int) -> None:
    wanted = fitting(lang, year)
    for budget in (300, 3_000):
        found = index.retrieve(QUESTION, mode=mode, budget=budget, filter=f"lang={lang} and year>={year}")
        assert found.fitting == len(wanted)
        assert found.tokens <= budget
        cited = {p.document for p in found.passages}
        cited |= {span.document for p in found.passages for span in p.sources}
        assert cited <= wanted
        texts = " ".join(p.text for p in found.passages)
        assert set(re.findall(r"zq(d\d+)", texts)) <= wanted
    assert found.passages, "what fits is found where there is room for all"


@pytest.mark.parametrize("mode", ALL)
def test_a_filter_that_leaves_everything_changes_nothing(index: Index, mode: str) -> None:
    plain = index.retrieve(QUESTION, mode=mode, budget=1_500)
    every = index.retrieve(QUESTION, mode=mode, budget=1_500, filter="year exists")
    assert (every.text, every.fitting) == (plain.text, 200)
    assert list(every.passages) == list(plain.passages)


@pytest.mark.parametrize("mode", RANKED)
@pytest.mark.parametrize(("lang", "year"), [("en", 1880), ("de", 1925), ("no", 1939)])
def test_the_ranking_is_the_whole_one_without_the_others(
    index: Index, mode: str, lang: str, year: int
) -> None:
    wanted = fitting(lang, year)
    whole = index.retrieve(QUESTION, mode=mode, budget=1_000_000)
    some = index.retrieve(QUESTION, mode=mode, budget=1_000_000, filter=f"lang={lang} and year>={year}")
    kept = [(p.document, p.score) for p in whole.passages if p.document in wanted]
    assert [(p.document, p.score) for p in some.passages] == kept


def test_concepts_bring_what_fits_in_turns(index: Index) -> None:
    """The units are those of the whole list; each concept's turn goes to its nearest unit that fits."""
    wanted = fitting("de", 1925)
    settings = Settings(kg_share=0.0)
    with Index.open(index.path, settings=settings) as texts:
        whole = texts.retrieve(QUESTION, mode="g2cons", budget=1_000_000)
        some = texts.retrieve(QUESTION, mode="g2cons", budget=1_000_000, filter="lang=de and year>=1925")
    assert {p.document for p in some.passages} == {p.document for p in whole.passages} & wanted
    score = {p.document: p.score for p in whole.passages}
    assert all(p.score == score[p.document] for p in some.passages)


def test_rows_of_tables_stand_on_what_fits(index: Index) -> None:
    """Entities and relations that are in no fitting passage have no row."""
    wanted = [d for d in marked() if d.id in fitting("no", 1930)]
    text = " ".join(f"{d.title} {d.text}" for d in wanted).casefold()
    for mode in ("skeleton", "noderag"):
        found = index.retrieve(QUESTION, mode=mode, budget=20_000, filter="lang=no and year>=1930")
        rows = [line for section in found.sections for line in section.text.splitlines() if "|" in line]
        names = [row.split("|")[1].casefold() for row in rows if row[0].isdigit()]
        assert all(name in text for name in names)
        assert names or mode == "noderag"


def test_nothing_fits(index: Index) -> None:
    for mode in ALL:
        found = index.retrieve(QUESTION, mode=mode, filter="year=1700")
        assert (found.text, found.reason, found.fitting) == ("", "nothing_fits_filter", 0)


def test_explained_answers_are_the_same(index: Index) -> None:
    for mode in ALL:
        plain = index.retrieve(QUESTION, mode=mode, budget=600, filter="lang=en")
        why = index.retrieve(QUESTION, mode=mode, budget=600, filter="lang=en", explain=True)
        assert why.text == plain.text
        assert len(why.passages) == len(plain.passages)
