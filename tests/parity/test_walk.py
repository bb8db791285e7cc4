"""The walk against its slow form, and bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import walk as oracle
from tests.oracles.walk_parts import WalkQuestion, vocabulary
from tests.parity.test_links import WORDS, asked, build, corpus, sentence, unit_rows
from tests.process import ROOT, environment
from tests.support.processors import PORTABLE, hidden, old_libraries

from ketrag_fast.errors import InputError
from ketrag_fast.kernels import links as kernel


def walk(links: kernel.Links, question: str, top: int = 1000, **options: object) -> kernel.Hits:
    [hits] = kernel.walk(links, [question], top, **options)  # type: ignore[arg-type]
    return hits


def lengths_of(units: list[tuple[str, list[str]]]) -> np.ndarray:
    return np.log([len(title) + sum(map(len, group)) + 1.0 for title, group in units])


def same(hits: kernel.Hits, wanted: tuple[list[int], np.ndarray], tolerance: float) -> None:
    """Equal candidates with equal scores; units of one score may change places."""
    ids, scores = hits
    order, values = wanted
    assert np.isfinite(scores).all()
    assert sorted(ids.tolist()) == sorted(order)
    by_id = dict(zip(ids.tolist(), scores.tolist(), strict=True))
    for unit, value in zip(order, values, strict=False):
        assert abs(by_id[unit] - value) <= tolerance
    np.testing.assert_allclose(scores[: len(values)], values, rtol=0, atol=tolerance)
    assert (np.diff(scores[:3]) < 0).all()  # whoever sorts again finds the same first places


@settings(max_examples=60, deadline=None)
@given(corpus, sentence)
def test_without_vectors_equals_the_slow_form(units: list[tuple[str, list[str]]], question: str) -> None:
    links, lengths = build(units), lengths_of(units)
    known = asked(links, question)
    hits = walk(links, question, exact=True, lengths=lengths)
    if not known.keywords:
        assert len(hits[0]) == 0
        return
    same(hits, oracle.walk(links, known, lengths), 1e-7)


def test_the_product_s_sizes_equal_the_slow_form_s() -> None:
    rng = np.random.default_rng(7)  # no two passages are worth the same
    words = [f"word{k}" for k in range(150)]
    often = 1 / np.arange(1, 151)
    some = lambda: " ".join(words[k] for k in rng.choice(150, rng.integers(4, 20), p=often / often.sum()))  # noqa: E731
    units = [(f"{some()[:12]} {k}", [some() + ".", some() + "."]) for k in range(260)]
    links, lengths = build(units), lengths_of(units)
    for question in ("word9 word20 word31", "word2 word77 word140 word5"):
        known = asked(links, question)
        for sizes in (oracle.PRODUCT, oracle.Sizes(pool=20, partners=7, rest_pool=12, seeds=3, step_pool=0)):
            found, values = oracle.walk(links, known, lengths, sizes=sizes)
            hits = walk(links, question, exact=True, lengths=lengths, numbers=dataclasses.asdict(sizes))
            same(hits, (found, values), 1e-7)
            for share in (0.9, 0.1, 0.01):
                wanted = np.random.default_rng(3).random(len(units)) < share
                options = {"exact": True, "lengths": lengths, "numbers": dataclasses.asdict(sizes)}
                slow = oracle.walk(links, known, lengths, sizes=sizes, wanted=wanted)
                same(walk(links, question, wanted=wanted, **options), slow, 1e-7)


@settings(max_examples=40, deadline=None)
@given(corpus, sentence, st.integers(1, 4), st.integers(0, 3))
def test_with_a_filter_equals_the_slow_form(
    units: list[tuple[str, list[str]]], question: str, every: int, offset: int
) -> None:
    links, lengths = build(units), lengths_of(units)
    known = asked(links, question)
    wanted = np.arange(offset, offset + len(units)) % every == 0
    hits = walk(links, question, exact=True, lengths=lengths, wanted=wanted)
    if not known.keywords:
        assert len(hits[0]) == 0
        return
    same(hits, oracle.walk(links, known, lengths, wanted=wanted), 1e-7)
    if wanted.all():
        plain_ids, plain_scores = walk(links, question, exact=True, lengths=lengths)
        assert np.array_equal(hits[0], plain_ids) and np.array_equal(hits[1], plain_scores)


def drawn_vectors(rng: np.random.Generator, rows: tuple[int, int, int], dim: int) -> kernel.Vectors:
    """Vectors of units, sentences and questions; a question's is what its codes of eight bits are."""
    units, sentences, questions = (unit_rows(rng, count, dim) for count in rows)
    step = np.abs(questions).max(axis=1, keepdims=True) / 127
    return kernel.Vectors(units, sentences, (np.round(questions / step) * step).astype(np.float32))


def in_doubles(vectors: kernel.Vectors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vectors as the slow form takes them; those of sentences are their signs, of length 1."""
    units, sentences, questions = (
        np.asarray(x, float) for x in (vectors.units, vectors.sentences, vectors.questions)
    )
    return units, np.where(sentences > 0, 1.0, -1.0) / np.sqrt(sentences.shape[1]), questions[0]


@settings(max_examples=40, deadline=None)
@given(corpus, sentence, st.integers(0, 9), st.sampled_from([3, 16, 21]))
def test_with_vectors_equals_the_slow_form(
    units: list[tuple[str, list[str]]], question: str, seed: int, dim: int
) -> None:
    links, lengths = build(units), lengths_of(units)
    known = asked(links, question)
    rng = np.random.default_rng(seed)
    sentences = int(links["first_sentence"][-1])
    vectors = drawn_vectors(rng, (len(units), sentences, 1), dim)
    hits = walk(links, question, exact=True, lengths=lengths, vectors=vectors)
    doubles = in_doubles(vectors)
    if not known.keywords:
        near = doubles[0] @ doubles[2]
        np.testing.assert_allclose(hits[1], np.sort(near)[::-1], atol=1e-5)
        return
    # The choice of a nearest sentence or anchor may turn on the last bit of a float32 product.
    same(hits, oracle.walk(links, known, lengths, doubles), 2e-3)


@settings(max_examples=20, deadline=None)
@given(corpus, st.lists(sentence, max_size=5))
def test_threads_and_the_number_wanted_change_nothing(
    units: list[tuple[str, list[str]]], questions: list[str]
) -> None:
    links = build(units)
    one, two = (kernel.walk(links, questions, 9, threads=threads) for threads in (1, 2))
    many = kernel.walk(links, questions, 1000, threads=1)
    assert [(i.tolist(), s.tolist()) for i, s in one] == [(i.tolist(), s.tolist()) for i, s in two]
    assert [i.tolist() for i, _ in one] == [i.tolist()[:9] for i, _ in many]


def tied(names: list[str]) -> list[tuple[str, list[str]]]:
    """One passage on a town, and one for each name that says the same of it."""
    return [("Turin", ["Turin is a city."]), *[(name, [f"{name} saw Turin."]) for name in names]]


def known_of(links: kernel.Links, question: str) -> WalkQuestion:
    """What an index of `tied` passages knows of a question."""
    words = question.lower().rstrip("?").split()
    phrases = {" ".join(words[a : a + k]) for a in range(len(words)) for k in range(1, 9)}
    ids = [vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    wanted = zip(ids, (set(words) - {"who", "which"}, phrases, phrases), strict=True)
    return WalkQuestion(*[[k for k, word in enumerate(v) if word in wanted] for v, wanted in wanted])


TIED = {
    "equal to the last bit": ([f"Ada {k}" for k in range(60)], "Ada 7 saw which city?"),
    # The name stands before, between and after the shared words, so that terms are summed in another order.
    "equal but for the order of sums": ([f"{c}{c}{c}ov" for c in "bdfhjkmnpqrvwxz"] * 4, "Who saw Turin?"),
}


def test_a_subject_that_every_passage_mentions() -> None:
    units = tied([f"Ada {k}" for k in range(60)])
    links, lengths = build(units), lengths_of(units)
    for question in ("Who saw Turin?", "Ada 7 saw which city?"):
        hits = walk(links, question, exact=True, lengths=lengths)
        same(hits, oracle.walk(links, known_of(links, question), lengths), 1e-7)


@pytest.mark.parametrize("name", TIED)
def test_ties_go_to_the_smaller_id(name: str) -> None:
    """Equal passages have equal scores, in the order of ids, here and in the slow form."""
    names, question = TIED[name]
    units = tied(names)
    links, lengths = build(units), lengths_of(units)
    ids, scores = walk(links, question, exact=True, lengths=lengths)
    order, values = oracle.walk(links, known_of(links, question), lengths)
    assert ids.tolist() == order
    np.testing.assert_allclose(scores[: len(values)], values, rtol=0, atol=1e-7)
    equal = [list(group) for _, group in itertools.groupby(range(2, len(ids)), key=lambda at: scores[at])]
    assert max(map(len, equal)) >= 10
    assert all(ids[group].tolist() == sorted(ids[group].tolist()) for group in equal)


ELSEWHERE = """
import json
from tests.parity import test_walk as here
print(json.dumps(here.rankings()))
"""


def rankings() -> list[object]:
    """Rank the tied passages: ids and scores of the core to the last bit, ids of the slow form."""
    found: list[object] = []
    for names, question in TIED.values():
        units = tied(names)
        links, lengths = build(units), lengths_of(units)
        for exact in (True, False):
            ids, scores = walk(links, question, exact=exact, lengths=lengths)
            found.append([ids.tolist(), [score.hex() for score in scores.tolist()]])
        found.append(oracle.walk(links, known_of(links, question), lengths)[0])
    return found


@pytest.mark.parametrize("libraries", ["as they are", "old"])
def test_ties_are_the_same_on_every_processor(libraries: str) -> None:
    variables = hidden(PORTABLE) | (old_libraries() if libraries == "old" else {})
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == rankings()


def test_a_question_of_a_thousand_keywords_and_long_passages() -> None:
    words = [f"word{k}" for k in range(1000)]
    rng = np.random.default_rng(4)  # no two pairs are worth the same
    some = lambda: " ".join(words[k] for k in rng.integers(0, 1000, rng.integers(5, 40)))  # noqa: E731
    units = [(f"Title {k}", [some() + ".", some() + "."]) for k in range(40)]
    units.append(("Long", [f"Sentence {k} has word{k} in it." for k in range(200)]))
    links, lengths = build(units), lengths_of(units)
    question = " ".join(words)
    known = [vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    keywords = [k for k, word in enumerate(known[0]) if word in set(words)]
    singles = [[k for k, word in enumerate(v) if word in set(words)] for v in known[1:]]
    hits = walk(links, question, exact=True, lengths=lengths)
    same(hits, oracle.walk(links, WalkQuestion(keywords, *singles), lengths), 1e-7)


@settings(max_examples=40, deadline=None)
@given(corpus, sentence, st.sampled_from(["none", "some", "zero"]), st.booleans())
def test_scores_are_numbers_and_fall(
    units: list[tuple[str, list[str]]], question: str, given_vectors: str, exact: bool
) -> None:
    links = build([*units, *units[:3]])  # some passages twice
    rows = (len(links["unit_subject"]), int(links["first_sentence"][-1]), 1)
    vectors = None
    if given_vectors != "none":
        rng = np.random.default_rng(3)
        drawn = [unit_rows(rng, count, 5) * (given_vectors == "some") for count in rows]
        vectors = kernel.Vectors(*(x.astype(np.float32) for x in drawn))
    ids, scores = walk(links, question, exact=exact, vectors=vectors)
    assert len(set(ids.tolist())) == len(ids)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) <= 0).all()


def test_a_question_of_names_without_keywords() -> None:
    units = [
        ("It", ["It is of Ada.", "It was made by Byron."]),
        (
            "Ada",
            ["Ada wrote."],
        ),  # "wrote It" would make a keyword of it, as of every capitalised function word
        ("Milan", ["Milan."]),
    ]
    links = build(units)
    question = "Was it what it was?"
    known = asked(links, question.replace("?", "."))
    assert not known.keywords and known.subjects
    assert len(walk(links, question)[0]) == 0
    rng = np.random.default_rng(8)
    drawn = [unit_rows(rng, rows, 16) for rows in (3, int(links["first_sentence"][-1]), 1)]
    ids, scores = walk(links, question, vectors=kernel.Vectors(*drawn))
    near = drawn[0].astype(float) @ drawn[2][0].astype(float)
    assert ids.tolist() == np.argsort(-near).tolist()
    np.testing.assert_allclose(scores, np.sort(near)[::-1], atol=1e-6)


def test_a_passage_of_ten_thousand_words() -> None:
    rng = np.random.default_rng(6)
    words = [f"word{k}" for k in range(400)]
    some = lambda count: " ".join(words[k] for k in rng.integers(0, 400, count)) + "."  # noqa: E731
    units = [
        ("Long", [some(14) for _ in range(720)]),
        *[(f"Short {k}", [some(9), some(7)]) for k in range(9)],
    ]
    links, lengths = build(units), lengths_of(units)
    question = " ".join(words[k] for k in (3, 50, 71, 200))
    vocabularies = [vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    known = WalkQuestion(*[[k for k, word in enumerate(v) if word in question.split()] for v in vocabularies])
    for exact in (True, False):
        hits = walk(links, question, exact=exact, lengths=lengths)
        assert len(hits[0]) == 10
        assert np.isfinite(hits[1]).all()
        if exact:
            same(hits, oracle.walk(links, known, lengths), 1e-7)


def test_bad_arguments_are_refused() -> None:
    links = build([("Ada", ["Ada wrote.", "Turin."]), ("Byron", ["Byron wrote of Ada."])])
    for lengths in (np.zeros(3), np.array([0.0, math.nan])):
        with pytest.raises(InputError, match="length"):
            walk(links, "Ada", lengths=lengths)
    for numbers in (
        {"chains": 1.5},
        {"pool": 0},
        {"no such": 1},
        {"chain": math.nan},
        {"partners": 60},
        {"chain": "1"},
        [1],
    ):
        with pytest.raises(InputError, match=r"walk|number"):
            walk(links, "Ada", numbers=numbers)
    assert sorted(walk(links, "Ada", numbers={"pool": 1})[0].tolist()) == [0, 1]
    assert kernel.walk(links, ["", "of the", "日本"], 5)[0][0].tolist() == []
    assert [len(i) for i, _ in kernel.walk(build([]), ["Ada"], 5)] == [0]
    assert len(walk(links, " ".join(WORDS))[0]) == 2
