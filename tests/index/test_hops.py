"""The walk finds second hops in documents of several passages: `make demo` shows one."""

from __future__ import annotations

import pytest

from ketrag_fast import Index, Settings
from tests.process import POLAR


@pytest.fixture(scope="module")
def polar(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("polar")
    return Index.build(POLAR / "articles", folder / "index", settings=Settings(modes="bm25,walk"))


def test_the_demo_answers_its_question_in_600_tokens(polar: Index) -> None:
    question = (POLAR / "question.txt").read_text("utf-8").strip()
    assert "died at Klerksdorp" in polar.retrieve(question, budget=600).text
    assert "Klerksdorp" not in polar.retrieve(question, mode="bm25", budget=600).text
