"""Relevance: from 0 to 1 in every mode, `min_score`, and questions that the documents do not answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Query, Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.index.indexes import Indexes
from tests.oracles import relevance as oracle
from tests.process import POLAR, command

MODES = ["bm25", "text", "fused", "knn", "keyword", "walk", "auto"]
QUESTION = "Which ship did Amundsen sail to the Ross Ice Shelf, and who built her?"
ELSEWHERE = "Which goalkeeper of Torquay United saved a penalty against Barcelona?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("relevance")
    Index.build(POLAR / "articles", folder / ".ketrag", settings=Settings(modes="all")).close()
    return folder


@pytest.fixture
def index(place: Path) -> Iterator[Index]:
    with Index.open(place / ".ketrag") as opened:
        yield opened


@pytest.mark.parametrize("mode", MODES)
def test_relevance_falls_and_has_one_scale(index: Index, mode: str) -> None:
    context = index.retrieve(QUESTION, mode=mode)
    found = [passage.relevance for passage in context.passages]
    assert all(0 < x < 1 for x in found) and found == sorted(found, reverse=True)
    assert not context.nothing_fits
    best = context.passages[0]
    same = index.retrieve(QUESTION, mode="bm25", top=1).passages[0]
    if same.unit == best.unit:
        assert same.relevance == best.relevance
    assert json.loads(json.dumps(context.to_json()))["passages"][0]["relevance"] == best.relevance


def test_terms_equal_the_slow_form(index: Index) -> None:
    stages = index._opened.generation.stages["links"]
    names = {"unit_tf": "unit_keywords_tf", "keyword_tf": "keyword_units_tf"}
    links = {name: np.asarray(stages[name]) for name in stages}
    links |= {name: links[other] for name, other in names.items()}
    units = [passage.unit for passage in index.retrieve(QUESTION, mode="walk").passages]
    for question in (QUESTION, ELSEWHERE, "Fram", " ".join([QUESTION, ELSEWHERE] * 3)):
        found = index._opened.searcher.evidence(question, units)
        np.testing.assert_allclose(found, oracle.terms(links, question, units), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_min_score_leaves_out_passages(index: Index, mode: str) -> None:
    every = [passage.relevance for passage in index.retrieve(QUESTION, mode=mode).passages]
    least = every[len(every) // 2]
    context = index.retrieve(QUESTION, mode=mode, min_score=least)
    assert 0 < len(context.passages) <= len(every)
    assert min(passage.relevance for passage in context.passages) >= least
    assert index.retrieve_many([Query(QUESTION, mode=mode, min_score=least)])[0].text == context.text
    none = index.retrieve(QUESTION, mode=mode, min_score=1)
    assert (none.reason, none.text, none.nothing_fits) == ("below_min_score", "", False)


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), "0.5", True])
def test_a_wrong_min_score_is_refused(index: Index, bad: object) -> None:
    with pytest.raises(ConfigError, match="min_score must be from 0 to 1"):
        index.retrieve(QUESTION, min_score=bad)  # type: ignore[arg-type]


def test_an_unanswerable_question_is_reported(index: Index, place: Path) -> None:
    context = index.retrieve(ELSEWHERE)
    assert context.passages and context.nothing_fits
    assert any("may not answer" in warning for warning in context.warnings)
    assert index.ask(ELSEWHERE).context.nothing_fits
    assert index.search(ELSEWHERE).nothing_fits and not index.search(QUESTION).nothing_fits
    assert index.search(ELSEWHERE).to_json()["nothing_fits"] is True
    for name in ("retrieve", "ask", "search"):
        done = command(name, ELSEWHERE, cwd=place)
        assert "may not answer" in done.err
        assert "may not answer" not in command(name, QUESTION, cwd=place).err


def test_one_of_several_indexes_that_fits_is_enough(index: Index, tmp_path: Path) -> None:
    bread = Document("bread", "Bread is baked from flour and water.", "Bread")
    with Index.build([bread], tmp_path / "bread") as other:
        several = Indexes({"other": other, "fits": index})
        both = several.search(QUESTION)
        assert not both.nothing_fits and not any("may not answer" in warning for warning in both.warnings)
        neither = several.search(ELSEWHERE)
        assert neither.nothing_fits
        assert sum("may not answer" in warning for warning in neither.warnings) == 1


BUILT = "The Fram was built by Colin Archer."
COLLECTIONS = {
    "one document": [Document("a", BUILT, title="Fram")],
    "a sentence each": [Document(str(k), f"Ship {k} sailed to port {k % 7}.", title="") for k in range(50)],
    "equal documents": [Document(str(k), BUILT, title="Fram") for k in range(40)],
    "titles only": [Document(str(k), "", title=f"Voyage {k} of the Fram") for k in range(40)],
}
QUESTIONS = {
    "stop words": "what is the of and to be",
    "long": "Who built the ship Fram, and when did she sail? " * 420,
    "another language": "Кто построил корабль и куда он плыл?",
    "a word": "Fram",
}


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_odd_collections_and_questions_are_answered(tmp_path: Path, collection: str) -> None:
    settings = Settings(modes="bm25,text,fused,walk")
    with Index.build(COLLECTIONS[collection], tmp_path / "i", settings=settings) as index:
        for question in QUESTIONS.values():
            for mode in ("bm25", "text", "fused", "walk"):
                context = index.retrieve(question, mode=mode)
                assert context.passages or context.reason in ("no_match", "empty_index")
                found = [passage.relevance for passage in context.passages]
                assert all(0 <= x <= 1 for x in found) and found == sorted(found, reverse=True)
