"""Labels: weights of keywords, and how texts spell them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index
from ketrag_fast.query.themes.labels import Speller, TermCounts, term_weights
from ketrag_fast.systems.shared.stored_rows import text_of

TEXTS = (
    "The write-ahead log holds each change. Status: open. The Wal Street office saw it.",
    "A checkpoint empties the write-ahead log. Status: closed. Storms from the North Sea came.",
    "Crash recovery replays the write-ahead log. Status: open. The North Sea was calm.",
    "North Sea oil rigs need a write-ahead log too. Status: open. Recovery of oil is slow.",
)


def weights_of(texts: tuple[str, ...], folder: Path) -> tuple[Speller, np.ndarray, np.ndarray]:
    with Index.build([Document(str(at), text) for at, text in enumerate(texts)], folder) as index:
        links = {name: np.asarray(value) for name, value in index.inspect.arrays()["links"].items()}
    units = np.arange(len(texts))
    counts = TermCounts(links).of(units)
    keyword = partial(text_of, links, "keywords")
    return Speller(keyword, units, list(texts), []), counts / len(texts), units


def test_expressions_replace_their_words(tmp_path: Path) -> None:
    speller, weights, units = weights_of(TEXTS, tmp_path / "index")
    terms, _ = speller.label(weights, units)
    assert "write-ahead log" in terms
    assert "North Sea" in terms
    assert not {"log", "write", "ahead", "north", "sea"} & set(terms)


def test_names_of_fields_come_last(tmp_path: Path) -> None:
    speller, weights, units = weights_of(TEXTS, tmp_path / "index")
    terms, reduced = speller.label(weights, units)
    assert terms[0] != "Status"
    assert reduced.sum() < weights.sum()


def test_one_form_of_a_word_is_enough(tmp_path: Path) -> None:
    texts = ("The index has indexes and indexing.", "Two indexes index it.", "An index again, with indexes.")
    speller, weights, units = weights_of(texts, tmp_path / "index")
    terms, _ = speller.label(weights, units)
    assert len([term for term in terms if term.lower().startswith("index")]) == 1


def test_small_talk_and_numbers_name_nothing(tmp_path: Path) -> None:
    texts = ("Hey, thanks for the 12345 apples.", "Hey thanks, apples again 12345.", "Apples, hey, 12345.")
    speller, weights, units = weights_of(texts, tmp_path / "index")
    assert [term.lower() for term in speller.label(weights, units)[0]] == ["apples"]


@pytest.mark.parametrize(("own", "size"), [(0, 5), (5, 5), (1, 5)])
def test_weights_grow_with_the_share_inside(own: int, size: int) -> None:
    weights = term_weights(np.array([own]), size, np.array([own + 2]), 100)
    assert weights[0] >= 0
    assert (weights[0] > 0) == (own / size > (2 + 1) / (95 + 2))
