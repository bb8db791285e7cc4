"""The arrays of the walk, BM25 over them, and what the walk's kernel refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import walk_parts as oracle
from tests.support.effort import Report, is_stopped

from ketrag_fast.errors import InputError
from ketrag_fast.kernels import links as kernel

WORDS = ["Ada", "Byron", "Turin", "engine", "engines", "river", "of", "the", "The", "1815", "2001", "wrote"]

word = st.sampled_from(WORDS)
sentence = st.lists(word, min_size=1, max_size=7).map(lambda words: " ".join(words) + ".")
unit = st.tuples(
    st.one_of(st.just(""), st.lists(word, max_size=3).map(" ".join)), st.lists(sentence, max_size=3)
)
corpus = st.lists(unit, min_size=1, max_size=45)


def build(units: list[tuple[str, list[str]]], threads: int = 1) -> kernel.Links:
    return kernel.build_links(
        [u[0] for u in units], [" ".join(u[1]) for u in units], [u[1] for u in units], threads=threads
    )


def asked(links: kernel.Links, question: str) -> oracle.WalkQuestion:
    """The known parts of a question made of WORDS."""
    words = question.lower().replace(".", "").split()
    phrases = {" ".join(words[a : a + k]) for a in range(len(words)) for k in range(1, 9)}
    ids = [oracle.vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    keys = {w[:-1] if w == "engines" else w for w in words} - {"of", "the"}
    known = [
        sorted(v.index(k) for k in wanted & set(v))
        for v, wanted in zip(ids, (keys, phrases, phrases), strict=True)
    ]
    return oracle.WalkQuestion(*known)


@settings(max_examples=60, deadline=None)
@given(corpus, sentence)
def test_bm25_equals_the_slow_form(units: list[tuple[str, list[str]]], question: str) -> None:
    links = build(units)
    question_ids = asked(links, question)
    [(ids, scores)] = kernel.bm25(links, [question], 1000)
    direct = oracle.bm25(links, question_ids.keywords)
    np.testing.assert_allclose(scores, direct[ids], atol=1e-9)
    assert set(ids.tolist()) == set(np.flatnonzero(direct > 0).tolist())


def unit_rows(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    x = rng.normal(size=(rows, dim))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def test_the_local_form_finds_the_second_hop() -> None:
    units = [
        ("Blue Engine", ["Blue Engine is a film of Ada Lorne."]),
        ("Ada Lorne", ["Ada Lorne was born in Turin."]),
        ("Red Engine", ["Red Engine is a film."]),
        *[(f"Filler {k}", [f"Filler {k} speaks of other matters."]) for k in range(40)],
    ]
    [(ids, _)] = kernel.walk(build(units), ["Where was the director of the film Blue Engine born?"], 2)
    assert set(ids.tolist()) == {0, 1}


def test_nothing_known_nothing_found() -> None:
    links = build([("Ada", ["Ada wrote."])])
    for question in ("", "the of", "unknown words", "日本"):
        for exact in (False, True):
            assert [len(i) for i, _ in kernel.walk(links, [question], 5, exact=exact)] == [0]
        assert [len(i) for i, _ in kernel.bm25(links, [question], 5)] == [0]
    assert kernel.walk(links, [], 5) == []
    empty = build([])
    assert [len(i) for i, _ in kernel.walk(empty, ["Ada"], 5)] == [0]
    assert [len(i) for i, _ in kernel.bm25(empty, ["Ada"], 5)] == [0]


def test_one_unit_identical_units_and_hostile_text() -> None:
    assert kernel.walk(build([("", ["Ada wrote."])]), ["Ada?"], 5)[0][0].tolist() == [0]
    same = build([("Ada", ["Ada wrote of Byron."])] * 300)
    ids, scores = kernel.walk(same, ["Who wrote of Byron?"], 250)[0]
    assert ids.tolist() == list(range(250))
    assert np.isfinite(scores).all()
    odd = [
        "\0\0",
        "ﬁ Ⅷ ½ ǅ İI\u0307",
        "🙂" * 50,
        "Ａｄａ e\u0301\u0301",
        "ไทย 日本語 한국어 العربية हिन्दी",
        "A " * 5000,
    ]
    links = build([(text[:40], [text, text[:9]]) for text in odd])
    for exact in (False, True):
        for ids, scores in kernel.walk(links, [*odd, "A " * 50_000], 10, exact=exact):
            assert np.isfinite(scores).all()
            assert len(set(ids.tolist())) == len(ids) <= 6


def test_bad_arguments_are_refused() -> None:
    links = build([("Ada", ["Ada wrote.", "Turin."]), ("Byron", ["Byron wrote of Ada."])])
    good = [np.eye(rows, 4, dtype=np.float32) for rows in (2, 3, 1)]
    assert len(kernel.walk(links, ["Ada"], 5, vectors=kernel.Vectors(*good))[0][0]) == 2
    for which in range(3):
        for wrong in (np.zeros((7, 4), np.float32), np.full(good[which].shape, np.nan, np.float32)):
            if which == 1 and np.isnan(wrong).any():
                continue
            with pytest.raises(InputError):
                kernel.walk(
                    links, ["Ada"], 5, vectors=kernel.Vectors(*good[:which], wrong, *good[which + 1 :])
                )
    for name in links:
        with pytest.raises(InputError, match=name.split("_")[0]):
            kernel.walk({k: v for k, v in links.items() if k != name}, ["Ada"], 5)
        with pytest.raises(InputError):
            kernel.walk({**links, name: np.zeros(3, np.int8)}, ["Ada"], 5)
    broken = links["unit_keywords_indices"].copy()
    broken[0] = 2**31
    with pytest.raises(InputError, match="unit_keywords"):
        kernel.bm25({**links, "unit_keywords_indices": broken}, ["Ada"], 5)
    with pytest.raises(InputError):
        kernel.build_links(["a"], [], [[]])
    with pytest.raises(InputError):
        kernel.build_links(["\ud800"], [""], [[]])


def test_a_report_can_stop_the_build() -> None:
    text = "Ada Byron wrote of the River Engine in 1815. " * 20

    def build(size: int, report: Report) -> None:
        kernel.build_links([""] * size, [text] * size, [[text]] * size, threads=1, report=report)

    is_stopped(build, 20_000)
