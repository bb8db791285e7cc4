"""Questions and options at their edges, in every mode."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import (
    ConfigError,
    DeadlineExceeded,
    EmptyQuery,
    InputError,
    ModeUnavailable,
)
from ketrag_fast.kernels.text import count_tokens
from tests.process import POLAR, command

MODES = ["bm25", "text", "fused", "knn", "keyword", "walk"]
QUESTION = "Which ship did Amundsen sail to the Ross Ice Shelf, and who built her?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    Index.build(POLAR / "articles", folder / ".ketrag", settings=Settings(modes="all")).close()
    return folder


@pytest.fixture
def index(place: Path) -> Iterator[Index]:
    with Index.open(place / ".ketrag") as opened:
        yield opened


@pytest.mark.parametrize("question", ["", " ", "\n\t\u2003", "\u00a0"])
def test_empty_question(index: Index, place: Path, question: str) -> None:
    with pytest.raises(EmptyQuery) as caught:
        index.retrieve(question)
    assert caught.value.code == "empty_query"
    assert caught.value.hint
    with pytest.raises(EmptyQuery, match="question 1"):
        index.retrieve_many([QUESTION, question])
    done = command("retrieve", question, cwd=place)
    assert (done.code, done.out) == (2, "")
    assert "the question is empty" in done.err


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("question", ["Zyzzyva qwrtpsdf?", "?!...", "\u0301", "\0\x01", "😀", "\ud800\udfff"])
def test_no_known_word(index: Index, mode: str, question: str) -> None:
    context = index.retrieve(question, mode=mode)
    assert (context.reason, context.text, context.tokens) == ("no_match", "", 0)
    assert list(context.passages) == list(context.sections) == []


@pytest.mark.parametrize("mode", MODES)
def test_function_words_alone_are_searched_in_the_texts(index: Index, mode: str) -> None:
    context = index.retrieve("the of and", mode=mode)
    if mode in ("text", "knn", "keyword"):  # vectors and graphs of keywords, which have no function words
        assert (context.reason, context.text) == ("no_match", "")
        return
    assert context.passages
    for passage in context.passages:
        assert {"the", "of", "and"} <= set(passage.text.lower().split())


@pytest.mark.parametrize("mode", MODES)
def test_lone_surrogates_are_no_words(index: Index, mode: str) -> None:
    clean = index.retrieve("Who built the Fram?", mode=mode)
    context = index.retrieve("Who built the \udce9 Fram\ud83d?", mode=mode)
    assert context.passages[0].document == clean.passages[0].document
    json.dumps(context.to_json()).encode()


@pytest.mark.parametrize("mode", MODES)
def test_long_question(index: Index, mode: str) -> None:
    for question in ("Amundsen sailed " * 6250, "x" * 100_000, "Fram, " * 16_000, "É" * 50_000):
        begin = time.process_time()
        context = index.retrieve(question, mode=mode)
        assert time.process_time() - begin < 5
        assert context.tokens <= context.budget
    words = " ".join((POLAR / "corpus.jsonl").read_text("utf-8").split())[:100_000]
    begin = time.process_time()
    assert index.retrieve(words, mode=mode).passages
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("mode", MODES)
def test_budgets_at_the_edge(index: Index, mode: str) -> None:
    none = index.retrieve(QUESTION, mode=mode, budget=0)
    assert (none.tokens, none.text, list(none.passages), none.reason) == (0, "", [], "budget_too_small")
    smallest = min(p.tokens for p in index.retrieve(QUESTION, mode=mode, budget=100_000).passages)
    for budget in (*range(1, 40, 4), smallest - 1):
        context = index.retrieve(QUESTION, mode=mode, budget=budget)
        assert context.tokens <= budget
        rows = sum(passage.tokens for passage in context.passages)
        assert context.tokens == rows or (mode == "keyword" and 0 < context.tokens - rows < 16)  # its heading
        assert len(context.passages) <= 1 or context.tokens >= 2 * smallest
    assert index.retrieve(QUESTION, mode=mode, budget=smallest - 1).passages, (
        "the first passage is cut to fit"
    )
    everything = index.retrieve(QUESTION, mode=mode, budget=2**63)
    assert everything.passages


def test_budgets_that_are_none(index: Index, place: Path) -> None:
    with pytest.raises(ConfigError, match="negative"):
        index.retrieve(QUESTION, budget=-1)
    assert index.retrieve(QUESTION, budget=2**99).passages
    assert index.retrieve(QUESTION, top=2**99).passages
    for text in ("-1", "x", "1.5", ""):
        done = command("retrieve", QUESTION, f"--budget={text}", cwd=place)
        assert (done.code, done.out) == (2, ""), text
        assert "budget" in done.err


@pytest.mark.parametrize("mode", MODES)
def test_top(index: Index, mode: str) -> None:
    nothing = index.retrieve(QUESTION, mode=mode, top=0)
    assert (list(nothing.passages), nothing.text) == ([], "")
    full = index.retrieve(QUESTION, mode=mode)
    one = index.retrieve(QUESTION, mode=mode, top=1)
    (first,), whole = one.passages, full.passages[0]
    assert (first.unit, first.score) == (whole.unit, whole.score)
    # Neighbours that rank below the first row that is left out are not joined to it.
    assert whole.start <= first.start < first.end <= whole.end
    assert list(index.retrieve(QUESTION, mode=mode, top=10**9).passages) == list(full.passages)
    with pytest.raises(ConfigError, match="negative"):
        index.retrieve(QUESTION, mode=mode, top=-1)


@pytest.mark.parametrize("mode", MODES)
def test_deadline(index: Index, mode: str) -> None:
    with pytest.raises(DeadlineExceeded) as caught:
        index.retrieve(QUESTION, mode=mode, deadline=0.0)
    assert caught.value.code == "deadline"
    assert index.retrieve(QUESTION, mode=mode, deadline=1e12).passages
    for bad in (-1.0, float("nan")):
        with pytest.raises((ConfigError, InputError)):
            index.retrieve(QUESTION, mode=mode, deadline=bad)


def test_modes_that_are_none(index: Index, place: Path) -> None:
    with pytest.raises(ConfigError, match="unknown mode 'magic'") as caught:
        index.retrieve(QUESTION, mode="magic")
    assert "walk" in (caught.value.hint or "")
    done = command("retrieve", QUESTION, "--mode", "magic", cwd=place)
    assert (done.code, done.out) == (2, "")
    assert "walk" in done.err
    for mode in ("skeleton", "ket"):
        with pytest.raises(ModeUnavailable, match=f"mode {mode} needs"):
            index.retrieve(QUESTION, mode=mode)
        done = command("retrieve", QUESTION, "--mode", mode, cwd=place)
        assert (done.code, done.out) == (4, "")
        assert "hint:" in done.err


def test_closed_index(place: Path) -> None:
    index = Index.open(place / ".ketrag")
    index.close()
    index.close()
    for use in (lambda: index.retrieve(QUESTION), lambda: index.modes, lambda: index.refresh(), index.stats):
        with pytest.raises(InputError, match="closed"):
            use()


def test_a_cut_passage_is_a_piece_of_its_document(index: Index) -> None:
    for budget in range(4, 60):
        for passage in index.retrieve(QUESTION, budget=budget).passages:
            text = (POLAR / "articles" / passage.document).read_text("utf-8")
            assert text[passage.start : passage.end] == passage.text
            assert int(count_tokens([passage.text])[0]) <= passage.tokens
