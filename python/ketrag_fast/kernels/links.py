"""The walk: retrieval over several hops without a language model, and the BM25 that it starts from.

Source: this project's specification of the walk (section 2.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    Report,
    callback,
    count,
    flag,
    marks,
    pack_texts,
    real,
    table,
    text,
)
from ketrag_fast.kernels.arrays import texts as as_texts
from ketrag_fast.kernels.arrays import vectors as as_vectors

Links = dict[str, U8 | U32 | U64 | F64]
"""The arrays of an index by name; each may be stored on its own and mapped."""

Hits = tuple[U32, F64]
"""Unit ids, best first, and their scores."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of length 1 from one encoder, row by row: units, sentences, questions (float32)."""

    units: F32
    sentences: F32
    questions: F32


def _rows(result: tuple[U64, U32, F64]) -> list[Hits]:
    indptr, ids, scores = result
    bounds = [int(x) for x in indptr]
    return [(ids[a:b], scores[a:b]) for a, b in pairwise(bounds)]


def _links_arrays(links: Links) -> Links:
    """The arrays by name; a kernel that lacks one, or finds it of another type, says so itself."""
    return dict(table(links, "links", ()))


def build_links(
    titles: Sequence[str],
    texts: Sequence[str],
    sentences: Sequence[Sequence[str]],
    *,
    threads: int = 0,
    report: Report = None,
) -> Links:
    """Arrays of the walk for n units: a title each (may be empty), a text, and its sentences.

    Raises InputError where the three differ in length.
    """
    own_titles, own_texts = as_texts(titles, "titles"), as_texts(texts, "texts")
    if not isinstance(sentences, list | tuple):
        raise InputError("sentences must be a list of lists of texts")
    groups = [as_texts(group, f"sentences {i}") for i, group in enumerate(sentences)]
    if not len(own_titles) == len(own_texts) == len(groups):
        raise InputError(
            f"{len(own_titles)} titles, {len(own_texts)} texts, {len(groups)} lists of sentences"
        )
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
    """The best `top` units of each question by BM25; only units that have one of its keywords."""
    found = _core.links_bm25(
        _links_arrays(links),
        *pack_texts(questions, "questions"),
        count(top, "top"),
        threads=count(threads, "threads"),
        report=callback(report),
    )
    return _rows(found)


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
    numbers: Mapping[str, float] | None = None,
    wanted: ArrayLike | None = None,
    threads: int = 0,
    report: Report = None,
) -> list[Hits]:
    """The best `top` units of each question by the walk; an empty list where nothing of it is known.

    With `vectors` variant A of the specification, else C. `exact` computes stage 1 over every unit
    and node, as the specification writes it; the default is local, so that its cost does not grow
    with the index.

    `lengths` are the logarithms of the units' lengths in characters plus one; without them the numbers of
    keywords are used. The first two places are chosen by another sum than that of the scores; where theirs
    would be too low, it is the least that is above the next. `numbers` replaces sizes and weights by name
    (rust/core/src/rank/walk/plan.rs lists them), to try others on questions of one's own. Of the units only
    those that `wanted` says are returned, and as many candidates as ever are taken from these; of the others
    the best serve as partners and bridges.

    Raises InputError on numbers that do not exist, on shapes that do not fit and on values that are not
    finite.
    """
    if vectors is not None and not isinstance(vectors, Vectors):
        raise InputError("vectors must be Vectors(units, sentences, questions)")

    def given(name: Literal["units", "sentences", "questions"]) -> F32 | None:
        return None if vectors is None else as_vectors(getattr(vectors, name), f"vectors.{name}")

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
            numbers=_numbers(numbers),
            wanted=None if wanted is None else marks(wanted, "wanted"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
    )
