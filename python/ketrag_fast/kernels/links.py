"""Search without a model (BM25, the walk), and contexts within a token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import (
    F32,
    F64,
    U8,
    U32,
    U64,
    Packed,
    Report,
    callback,
    count,
    flag,
    marks,
    pack_texts,
    real,
    table,
    text,
    whole,
)
from ketrag_fast.kernels.arrays import texts as as_texts
from ketrag_fast.kernels.arrays import vectors as as_vectors
from ketrag_fast.records import dataclass

Links = dict[str, U8 | U32 | U64 | F64]
"""The arrays of an index by name. Each can be stored in a file and memory-mapped."""

Hits = tuple[U32, F64]
"""Unit ids, best first, and their scores."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of units, sentences and questions from one encoder: float32 matrices with rows of length 1.

    For sentences only the signs of the values are used, as in an index.

    Examples:
        >>> import numpy as np
        >>> links = build_links(["", ""], ["The Fram sailed.", "The Maud sailed."], [[], []])
        >>> near = Vectors(np.eye(2, dtype="f4"), np.zeros((0, 2), "f4"), np.eye(2, dtype="f4")[1:])
        >>> [units.tolist() for units, scores in walk(links, ["Which ship sailed?"], 2, vectors=near)]
        [[1, 0]]
    """

    units: F32
    sentences: F32
    questions: F32


def _rows(result: tuple[U64, U32, F64]) -> list[Hits]:
    indptr, ids, scores = result
    bounds = [int(x) for x in indptr]
    return [(ids[a:b], scores[a:b]) for a, b in pairwise(bounds)]


def _links_arrays(links: Links) -> Links:
    """Return the arrays by name; the kernel checks names and types."""
    return dict(table(links, "links", ()))


def build_links(
    titles: Sequence[str],
    texts: Sequence[str],
    sentences: Sequence[Sequence[str]],
    *,
    threads: int = 0,
    report: Report = None,
) -> Links:
    """Build the arrays that `bm25` and `walk` read, for n units.

    Args:
        titles: a title for each unit; may be empty.
        texts: the text of each unit.
        sentences: the sentences of each unit.

    Raises:
        InputError: if the three differ in length.

    Examples:
        >>> links = build_links(["Maud"], ["Amundsen built the Maud."], [["Amundsen built the Maud."]])
        >>> [units.tolist() for units, scores in bm25(links, ["Who built the Maud?"], 1)]
        [[0]]
    """
    own_titles, own_texts = as_texts(titles, "titles"), as_texts(texts, "texts")
    if not isinstance(sentences, list | tuple):
        raise InputError("sentences must be a list of lists of texts")
    groups = [as_texts(group, f"sentences {i}") for i, group in enumerate(sentences)]
    if not len(own_titles) == len(own_texts) == len(groups):
        lengths = f"{len(own_titles)}, {len(own_texts)} and {len(groups)}"
        raise InputError(f"titles, texts and sentences must have equal length, got {lengths}")
    first = np.zeros(len(groups) + 1, np.uint64)
    np.cumsum([len(group) for group in groups], out=first[1:])
    return _core.links_build(
        *pack_texts(own_titles, "titles"),
        *pack_texts(own_texts, "texts"),
        *pack_texts([sentence for group in groups for sentence in group], "sentences"),
        first,
        threads=count(threads, "threads"),
        report=callback(report),
    )


def bm25(
    links: Links, questions: Sequence[str], top: int, *, threads: int = 0, report: Report = None
) -> list[Hits]:
    """Return the best `top` units for each question by BM25. A unit must contain a keyword of the question.

    Examples:
        >>> links = build_links(["", ""], ["The Fram sailed.", "Oslo is a city."], [[], []])
        >>> [units.tolist() for units, scores in bm25(links, ["Which city?"], 5)]
        [[1]]
    """
    hits = _core.links_bm25(
        _links_arrays(links),
        *pack_texts(questions, "questions"),
        count(top, "top"),
        threads=count(threads, "threads"),
        report=callback(report),
    )
    return _rows(hits)


def _numbers(numbers: Mapping[str, float] | None) -> list[tuple[str, float]] | None:
    if numbers is None:
        return None
    if not isinstance(numbers, Mapping):
        raise InputError("numbers must be a mapping of names to numbers")
    return [(text(name, "a name in numbers"), _number(value, str(name))) for name, value in numbers.items()]


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"number {name} must be a number, not {value!r}")
    return float(value)


def walk(
    links: Links,
    questions: Sequence[str],
    top: int,
    *,
    vectors: Vectors | None = None,
    exact: bool = False,
    lengths: F64 | None = None,
    documents: ArrayLike | None = None,
    numbers: Mapping[str, float] | None = None,
    wanted: ArrayLike | None = None,
    files: tuple[Sequence[str] | Packed, Sequence[str] | Packed] | None = None,
    threads: int = 0,
    report: Report = None,
) -> list[Hits]:
    """Return the best `top` units for each question by the walk; none if no keyword is in the index.

    Args:
        vectors: unit, sentence and question vectors; without them the walk uses keywords alone.
        exact: whether the first stage covers every unit and node. By default it is local, so that its cost
            does not grow with the index.
        lengths: natural logarithms of the units' lengths in characters plus one; without them the
            number of keywords is used.
        documents: the document number of each unit; units of one document are adjacent. With it, if a second
            hop would be random, units whose document also matches elsewhere gain score.
        numbers: replaces sizes and weights by name (rust/core/src/rank/walk/plan.rs lists them).
        wanted: a boolean for each unit. Only units marked True are candidates and results; the best
            other units still serve as partners and bridges.
        files: the id of each document, which is the path of a file, and the text of each unit, with which
            files of code are ranked, and code and what a person wrote to an assistant are recognised; it
            needs `documents`.

    Returns:
        (unit ids, scores) for each question. The first two units are chosen by another sum than the
        scores, so a score that would be below the next one is raised just above it.

    Raises:
        InputError: for unknown numbers, shapes that do not fit and values that are not finite.

    Examples:
        >>> titles, texts = ["Fram", "Maud"], ["Nansen built the Fram.", "Amundsen built the Maud."]
        >>> links = build_links(titles, texts, [[text] for text in texts])
        >>> [units.tolist() for units, scores in walk(links, ["Who built the Maud?"], 2)]
        [[1, 0]]
    """
    if vectors is not None and not isinstance(vectors, Vectors):
        raise InputError("vectors must be Vectors(units, sentences, questions)")

    def given(name: Literal["units", "sentences", "questions"]) -> F32 | None:
        return None if vectors is None else as_vectors(getattr(vectors, name), f"vectors.{name}")

    if files is not None and not (isinstance(files, (tuple, list)) and len(files) == 2):
        raise InputError("files must be a pair: the ids of the documents, and the texts of the units")
    paths, texts = (None, None) if files is None else (pack_texts(one, "files") for one in files)
    return _rows(
        _core.walk_rank(
            _links_arrays(links),
            *pack_texts(questions, "questions"),
            count(top, "top"),
            unit_vectors=given("units"),
            sentence_vectors=given("sentences"),
            question_vectors=given("questions"),
            exact=flag(exact, "exact"),
            lengths=None if lengths is None else real(lengths, "lengths"),
            documents=None if documents is None else whole(documents, np.uint32, "documents"),
            numbers=_numbers(numbers),
            wanted=None if wanted is None else marks(wanted, "wanted"),
            paths=paths,
            texts=texts,
            threads=count(threads, "threads"),
            report=callback(report),
        )
    )


def fill(costs: ArrayLike, token_budget: int, *, fill_policy: str = "first_overflow_stops") -> U64:
    """Return the positions of the rows, best first, whose `costs` sum to at most `token_budget`.

    `first_overflow_stops` ends at the first row that does not fit; `skip_and_continue` skips it. Raises
    `InputError` for negative numbers.

    Examples:
        >>> fill([40, 70, 30], 100).tolist()
        [0]
        >>> fill([40, 70, 30], 100, fill_policy="skip_and_continue").tolist()
        [0, 2]
    """
    return _core.fill(
        whole(costs, np.uint64, "costs"),
        count(token_budget, "token_budget"),
        fill_policy=text(fill_policy, "fill_policy"),
    )
