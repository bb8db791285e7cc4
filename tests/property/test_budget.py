"""Acceptance 13 through the index: for any question, mode and budget the context keeps its promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.process import POLAR

from ketrag_fast import Index, Settings
from ketrag_fast.types import Context

MODES = ("bm25", "text", "fused", "knn", "keyword", "walk")
TEXTS = {path.name: path.read_text("utf-8") for path in (POLAR / "articles").iterdir()}
WORDS = sorted({word for text in list(TEXTS.values())[:8] for word in text.split()})
QUESTIONS = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), min_size=1, max_size=9).map(" ".join)
ASKED = QUESTIONS.filter(lambda text: bool(text.strip()))
PRESETS = {
    "default": Settings(modes="all"),
    "ket-rag": Settings(system="ket-rag", modes="all"),
    "ket-rag of 300": Settings(system="ket-rag", chunk_tokens=300, modes="all"),
}


@pytest.fixture(scope="module", params=PRESETS)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    path = tmp_path_factory.mktemp("budget") / "index"
    with Index.build(POLAR / "articles", path, settings=PRESETS[request.param]) as built:
        yield built


def check(context: Context) -> None:
    extra = context.tokens - sum(passage.tokens for passage in context.passages)
    assert extra == 0 or (context.mode == "keyword" and 0 < extra < 16)  # KET-RAG's heading
    assert context.tokens <= context.budget
    assert [passage.rank for passage in context.passages] == list(range(1, len(context.passages) + 1))
    assert len({passage.unit for passage in context.passages}) == len(context.passages)
    assert (context.reason is None) == bool(context.text)
    assert all(math.isfinite(passage.score) for passage in context.passages)
    if context.mode != "knn":
        assert all(a.score >= b.score for a, b in pairwise(context.passages))
    for passage in context.passages:
        assert TEXTS[passage.document][passage.start : passage.end] == passage.text
        assert passage.text in context.text


def plain(context: Context) -> dict[str, object]:
    data = context.to_json()
    del data["timings_ms"]
    return data


@given(question=ASKED, mode=st.sampled_from(MODES), budget=st.integers(0, 3000))
@settings(max_examples=60, deadline=None)
def test_promises_of_a_context(index: Index, question: str, mode: str, budget: int) -> None:
    context = index.retrieve(question, mode=mode, budget=budget)
    assert context.budget == budget
    check(context)


@given(
    questions=st.lists(ASKED, min_size=1, max_size=4),
    mode=st.sampled_from(MODES),
    budgets=st.lists(st.integers(0, 2500), min_size=1, max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_many_are_as_one_by_one(index: Index, questions: list[str], mode: str, budgets: list[int]) -> None:
    """Also where several budgets share one ranking."""
    several = index.retrieve_many(questions, mode=mode, budgets=budgets, threads=2)
    for question, row in zip(questions, several, strict=True):
        for budget, context in zip(budgets, row, strict=True):
            check(context)
            assert plain(context) == plain(index.retrieve(question, mode=mode, budget=budget))
    many = index.retrieve_many(questions, mode=mode, budget=budgets[0], threads=2)
    assert [plain(context) for context in many] == [plain(row[0]) for row in several]


def test_chunks_and_units_of_split_chunks(index: Index) -> None:
    """Each unit lies in its chunk; the units of a document cover what is printed of it in order."""
    counts = index.stats()["counts"]
    split = index.stats()["settings"]["split_level"] > 0
    assert counts["subchunks"] >= counts["chunks"] >= counts["documents"] == len(TEXTS)
    found: dict[int, tuple[int, str, int, int]] = {}
    for mode in MODES:
        for question in (
            "Who built the Fram?",
            "ship ice pole expedition winter",
            "Amundsen Scott Shackleton",
        ):
            for p in index.retrieve(question, mode=mode, budget=20_000).passages:
                assert p.end > p.start
                if p.units:
                    assert p.unit in p.units and p.units == tuple(range(p.units[0], p.units[-1] + 1))
                    continue
                assert found.setdefault(p.unit, (p.chunk, p.document, p.start, p.end))[:3] == (
                    p.chunk,
                    p.document,
                    p.start,
                )
                assert p.kind == ("subchunk" if split else "chunk")
                assert p.chunk < counts["chunks"]
                assert p.unit < counts["subchunks"]
    assert found
    for (_, (chunk, document, start, _)), (_, (later, other, begin, _)) in pairwise(sorted(found.items())):
        assert chunk <= later
        assert document != other or start < begin
