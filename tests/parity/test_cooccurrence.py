"""Co-occurrence neighbours and the KNN graph against their oracles, on small and on real texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.oracles import cooccurrence as oracle
from tests.support.inner_kernels.cooccurrence import knn_graph

from ketrag_fast import errors
from ketrag_fast.kernels.vectors import NOBODY
from ketrag_fast.systems.papers.kernels import cooccurrence_kernels, cooccurrence_knn

Rows = tuple[NDArray[np.uint64], NDArray[np.uint32]]


def packed(texts: list[list[int]]) -> Rows:
    indptr = np.cumsum([0, *map(len, texts)]).astype(np.uint64)
    return indptr, np.array([word for text in texts for word in text], dtype=np.uint32)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.sets(st.integers(0, 30), max_size=12).map(sorted), max_size=30),
    k=st.integers(0, 33),
    ratio=st.none() | st.floats(0, 1),
    allow_zero=st.booleans(),
    threads=st.integers(0, 3),
)
def test_equals_the_oracle(
    texts: list[list[int]], k: int, ratio: float | None, allow_zero: bool, threads: int
) -> None:
    expected = oracle.cooccurrence_knn(texts, k, max_df_ratio=ratio, allow_zero=allow_zero)
    for kernel in cooccurrence_kernels():
        found = cooccurrence_knn(
            *packed(texts),
            31,
            k,
            max_df_ratio=ratio,
            allow_zero=allow_zero,
            threads=threads,
            kernel=kernel,  # type: ignore[arg-type]
        )
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.dtype == np.uint32
            np.testing.assert_array_equal(mine, theirs)


def real_texts(folder: Path, limit: int) -> list[list[int]]:
    corpus = folder / "corpus.jsonl"
    vocabulary: dict[str, int] = {}
    with corpus.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line, _ in zip(lines, range(limit), strict=False)]
    words = [re.findall("[a-z]+", f"{r['title']} {r['text']}".lower()) for r in records]
    return [sorted({vocabulary.setdefault(word, len(vocabulary)) for word in text}) for text in words]


def test_equals_the_oracle_on_real_passages(passages: Path) -> None:
    texts = real_texts(passages, 126)
    columns = 1 + max(max(text, default=0) for text in texts)
    for options in ({}, {"max_df_ratio": 0.02}):
        expected = oracle.cooccurrence_knn(texts, 4, **options)  # type: ignore[arg-type]
        for kernel in cooccurrence_kernels():
            found = cooccurrence_knn(*packed(texts), columns, 4, kernel=kernel, **options)  # type: ignore[arg-type]
            np.testing.assert_array_equal(found.ids, expected[0])
            np.testing.assert_array_equal(found.counts, expected[1])


def test_rows_answer_for_a_part() -> None:
    texts = [[0, i % 3 + 1, i % 5 + 4] for i in range(50)]
    whole = cooccurrence_knn(*packed(texts), 9, 3)
    part = cooccurrence_knn(*packed(texts), 9, 3, rows=(20, 31))
    np.testing.assert_array_equal(part.ids, whole.ids[20:31])
    assert cooccurrence_knn(*packed(texts), 9, 0, rows=(20, 31)).ids.shape == (11, 0)
    assert cooccurrence_knn(*packed([]), 0, 5).ids.shape == (0, 5)


def test_wrong_arrays_are_refused() -> None:
    good = packed([[0, 2], [1]])
    with pytest.raises(errors.InputError, match="text 0 are not strictly ascending"):
        cooccurrence_knn(*packed([[2, 0], [1]]), 3, 1)
    with pytest.raises(errors.InputError, match="not below the number of columns"):
        cooccurrence_knn(*good, 2, 1)
    with pytest.raises(errors.InputError, match="indptr"):
        cooccurrence_knn(good[0][:0], good[1], 3, 1)
    with pytest.raises(errors.InputError, match="integers"):
        cooccurrence_knn(good[0], np.zeros(3, np.float32), 3, 1)
    strided = np.repeat(good[1], 2)[::2]  # is copied
    assert cooccurrence_knn(good[0], strided, 3, 1).ids.tolist() == cooccurrence_knn(*good, 3, 1).ids.tolist()
    for options in (
        {"max_df_ratio": 1.5},
        {"max_df_ratio": float("nan")},
        {"kernel": "mmx"},
        {"rows": (1, 3)},
    ):
        with pytest.raises(errors.InputError):
            cooccurrence_knn(*good, 3, 1, **options)
    with pytest.raises(errors.InputError):
        cooccurrence_knn(*good, 3, 2**62)
    wide = cooccurrence_knn(
        good[0].astype(np.int64), good[1].astype(np.int64), 3, 1
    )  # values decide, not types
    assert wide.ids.tolist() == cooccurrence_knn(*good, 3, 1).ids.tolist()


def test_a_report_stops_the_work() -> None:
    rng = np.random.default_rng(1)
    words = np.sort(
        rng.permuted(np.tile(np.arange(600, dtype=np.uint32), (9000, 1)), axis=1)[:, :250], axis=1
    )
    indptr = np.arange(0, words.size + 1, 250, dtype=np.uint64)
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> bool:
        seen.append((done, total))
        return False

    with pytest.raises(errors.Cancelled):
        cooccurrence_knn(indptr, words.ravel(), 600, 1, threads=1, kernel="portable", report=stop)
    assert len(seen) == 1


@settings(max_examples=60, deadline=None)
@given(data=st.data(), nodes=st.integers(0, 12), lexical=st.integers(0, 3), semantic=st.integers(0, 3))
def test_the_graph_equals_its_oracle(data: st.DataObject, nodes: int, lexical: int, semantic: int) -> None:
    member = st.sampled_from([NOBODY, *range(nodes)])

    def draw(k: int) -> NDArray[np.uint32]:
        ids = data.draw(st.lists(member, min_size=nodes * k, max_size=nodes * k))
        return np.array(ids, dtype=np.uint32).reshape(nodes, k)

    first, second = draw(lexical), draw(semantic)
    graph = knn_graph(first, second)
    rows = np.split(graph.indices, graph.indptr[1:-1].astype(np.int64)) if nodes else []
    assert [row.tolist() for row in rows] == oracle.knn_graph(first, second)


def test_wrong_neighbour_lists_are_refused() -> None:
    with pytest.raises(errors.InputError, match="2 rows"):
        knn_graph(np.zeros((2, 1), np.uint32), np.zeros((3, 1), np.uint32))
    with pytest.raises(errors.InputError, match="names 2"):
        knn_graph(np.full((2, 1), 2, np.uint32), np.zeros((2, 1), np.uint32))
