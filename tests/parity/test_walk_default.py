"""The walk as every question gets it (`exact=False`, the product's sizes) against its slow form.

The rules by which it differs from the exact form are those of `reference.walk_local`. The random corpus
is large enough that each of them decides something: without any one of them the slow form ranks other
units.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import walk as oracle
from tests.oracles.walk_local import Local
from tests.oracles.walk_parts import WalkQuestion, vocabulary
from tests.parity.test_links import asked, build, corpus, sentence
from tests.parity.test_walk import drawn_vectors, in_doubles, lengths_of
from tests.process import POLAR

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.text import sentence_spans, tokenise

DEFAULT = Local()
Units = list[tuple[str, list[str]]]


def default(links: kernel.Links, question: str, lengths: np.ndarray, **options: object) -> kernel.Hits:
    """The ranking of every unit that the walk ranks."""
    [hits] = kernel.walk(links, [question], 10_000, lengths=lengths, **options)  # type: ignore[arg-type]
    return hits


def slow(
    links: kernel.Links, known: WalkQuestion, lengths: np.ndarray, local: Local = DEFAULT, **options: object
) -> tuple[list[int], np.ndarray]:
    return oracle.walk(links, known, lengths, sizes=oracle.PRODUCT, local=local, **options)  # type: ignore[arg-type]


def same(hits: kernel.Hits, wanted: tuple[list[int], np.ndarray], tolerance: float = 1e-7) -> None:
    """Equal units, with the candidates' scores; only units whose scores are equal may change places."""
    ids, scores = hits
    order, values = wanted
    assert sorted(ids.tolist()) == sorted(order)
    np.testing.assert_allclose(scores[: len(values)], values, rtol=tolerance, atol=tolerance)
    by_id = dict(zip(ids.tolist(), scores.tolist(), strict=True))
    for unit, value in zip(order, values, strict=False):
        assert abs(by_id[unit] - value) <= tolerance * (1 + abs(value))
    assert (np.diff(scores) <= 0).all()


@settings(max_examples=60, deadline=None)
@given(corpus, sentence)
def test_small_corpora_with_many_equal_units(units: Units, question: str) -> None:
    links, lengths = build(units), lengths_of(units)
    known = asked(links, question)
    hits = default(links, question, lengths)
    if not known.keywords:
        assert len(hits[0]) == 0
        return
    same(hits, slow(links, known, lengths))


@settings(max_examples=30, deadline=None)
@given(corpus, sentence, st.integers(1, 4), st.integers(0, 3))
def test_small_corpora_with_a_filter(units: Units, question: str, every: int, offset: int) -> None:
    links, lengths = build(units), lengths_of(units)
    known = asked(links, question)
    wanted = np.arange(offset, offset + len(units)) % every == 0
    hits = default(links, question, lengths, wanted=wanted)
    if not known.keywords:
        assert len(hits[0]) == 0
        return
    same(hits, slow(links, known, lengths, wanted=wanted))


@settings(max_examples=30, deadline=None)
@given(corpus, sentence, st.integers(0, 9))
def test_small_corpora_with_vectors(units: Units, question: str, seed: int) -> None:
    links, lengths = build(units), lengths_of(units)
    known = asked(links, question)
    rng = np.random.default_rng(seed)
    rows = (len(units), int(links["first_sentence"][-1]), 1)
    vectors = drawn_vectors(rng, rows, 16)
    hits = default(links, question, lengths, vectors=vectors)
    if not known.keywords:
        assert sorted(hits[0].tolist()) == list(range(len(units)))
        return
    doubles = in_doubles(vectors)
    # The choice of a nearest sentence or anchor may turn on the last bit of a float32 product.
    same(hits, slow(links, known, lengths, vectors=doubles), 2e-3)


COUNT, WORDS = 420, 300


def drawn(seed: int) -> Units:
    """Passages whose commonest words are in more units than are walked over; every tenth is there twice."""
    rng = np.random.default_rng(seed)
    words = [f"word{k}" for k in range(WORDS)]
    often = 1 / np.arange(1, WORDS + 1)
    often /= often.sum()

    def text(least: int, most: int) -> str:
        return " ".join(words[k] for k in rng.choice(WORDS, rng.integers(least, most), p=often))

    units = [(f"{text(1, 3)} {k}", [f"{text(4, 12)}.", f"{text(4, 12)}."]) for k in range(COUNT)]
    return [*units, *units[::10]]


def known_of(links: kernel.Links, question: str) -> WalkQuestion:
    """The ids of the question's words; of one-word names and subjects the same."""
    words = set(question.split())
    ids = [vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    return WalkQuestion(*[[k for k, word in enumerate(v) if word in words] for v in ids])


QUESTIONS = ("word9 word20 word31", "word2 word77 word140 word5", "word120 word250")


@pytest.fixture(scope="module")
def large() -> tuple[kernel.Links, np.ndarray]:
    units = drawn(7)
    return build(units), lengths_of(units)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_corpus_in_which_every_rule_decides(large: tuple[kernel.Links, np.ndarray], question: str) -> None:
    links, lengths = large
    known = known_of(links, question)
    same(default(links, question, lengths), slow(links, known, lengths))
    wanted = np.random.default_rng(3).random(len(lengths)) < 0.2
    hits = default(links, question, lengths, wanted=wanted)
    same(hits, slow(links, known, lengths, wanted=wanted))


def sections(titles: int) -> tuple[kernel.Links, np.ndarray]:
    """Sixty units with the given number of distinct titles; their texts share words."""
    words = ["harbour", "winter", "sledge", "engine", "letter", "museum", "island", "captain", "voyage"]
    chance = np.random.default_rng(11)
    units: Units = []
    for at in range(60):
        text = " ".join(chance.choice(words, 7)).capitalize() + f" Erik{at % 9}."
        units.append((f"Title{at % titles}", [text, " ".join(chance.choice(words, 5)).capitalize() + "."]))
    return build(units), lengths_of(units)


def test_among_few_subjects_the_direct_match_replaces_pairs() -> None:
    question = "winter harbour engine voyage"
    links, lengths = sections(20)
    known = asked(links, question)
    found = default(links, question, lengths)
    same(found, slow(links, known, lengths))
    before = default(links, question, lengths, numbers={"direct": 0})
    assert before[0].tolist() != found[0].tolist()
    [(direct, _)] = kernel.bm25(links, [question], 10)
    assert len({*direct.tolist()} & {*found[0][:10].tolist()}) >= len(
        {*direct.tolist()} & {*before[0][:10].tolist()}
    )


def test_among_many_subjects_nothing_changes() -> None:
    question = "winter harbour engine voyage"
    links, lengths = sections(60)
    found, before = (
        default(links, question, lengths, **options) for options in ({}, {"numbers": {"direct": 0}})
    )
    assert found[0].tolist() == before[0].tolist()
    assert found[1].tolist() == before[1].tolist()


def unlinked(*, mention: bool, titled: bool = True) -> tuple[kernel.Links, np.ndarray]:
    """Sixty units with a title each, which the text of every fifth other unit names or none does."""
    words = ["harbour", "winter", "sledge", "engine", "letter", "museum", "island", "captain", "voyage"]
    chance = np.random.default_rng(12)
    units: Units = []
    for at in range(60):
        text = " ".join(chance.choice(words, 7)).capitalize() + f" Erik{at % 9}."
        other = f" Maud{(at + 7) % 60}." if mention and at % 5 == 0 else "."
        more = " ".join(chance.choice(words, 5)).capitalize() + other
        units.append((f"Maud{at}" if titled else "", [text, more]))
    return build(units), lengths_of(units)


@pytest.mark.parametrize(
    ("question", "options", "changes"),
    [
        ("winter harbour engine voyage", {"mention": False}, True),
        ("winter harbour engine voyage", {"mention": True}, False),
        ("winter harbour engine voyage of Maud11", {"mention": False}, False),
        ("winter harbour engine voyage", {"mention": False, "titled": False}, False),
    ],
)
def test_where_no_unit_mentions_another_the_direct_match_counts_more(
    question: str, options: dict[str, bool], changes: bool
) -> None:
    links, lengths = unlinked(**options)
    found = default(links, question, lengths)
    same(found, slow(links, asked(links, question), lengths))
    before = default(links, question, lengths, numbers={"unlinked": 0})
    assert (found[1].tolist() != before[1].tolist()) == changes


def untitled() -> tuple[kernel.Links, np.ndarray]:
    """Sixty units without titles that have two words of the question and share others."""
    asked_words = ["harbour", "winter", "engine", "voyage"]
    chance = np.random.default_rng(13)
    units: Units = []
    for _ in range(60):
        own = [f"thing{k}" for k in chance.integers(0, 60, 40)]
        own[::20] = chance.choice(asked_words, 2)
        units.append(("", [" ".join(own[:22]).capitalize() + ".", " ".join(own[22:]).capitalize() + "."]))
    return build(units), lengths_of(units)


@pytest.mark.parametrize("with_vectors", [False, True])
def test_among_units_without_subjects_the_direct_match_replaces_pairs(with_vectors: bool) -> None:
    question = "winter harbour engine voyage"
    links, lengths = untitled()
    vectors = doubles = None
    if with_vectors:
        vectors = drawn_vectors(np.random.default_rng(7), (60, 120, 1), 16)
        doubles = in_doubles(vectors)
    found = default(links, question, lengths, vectors=vectors)
    same(found, slow(links, asked(links, question), lengths, vectors=doubles), 2e-3 if with_vectors else 1e-7)
    before = default(links, question, lengths, vectors=vectors, numbers={"direct": 0})
    assert found[1].tolist() != before[1].tolist()
    wanted = np.arange(len(lengths)) % 3 == 0
    hits = default(links, question, lengths, wanted=wanted)
    same(hits, slow(links, asked(links, question), lengths, wanted=wanted))


@pytest.mark.parametrize("with_vectors", [False, True])
def test_where_pairs_are_chance_the_rest_of_the_document_counts(with_vectors: bool) -> None:
    question = "winter harbour engine voyage"
    links, lengths = untitled()
    vectors = doubles = None
    if with_vectors:
        vectors = drawn_vectors(np.random.default_rng(7), (60, 120, 1), 16)
        doubles = in_doubles(vectors)
    documents = np.sort(np.random.default_rng(5).integers(0, 25, 60)).astype(np.uint32)
    known = asked(links, question)
    found = default(links, question, lengths, vectors=vectors, documents=documents)
    options = {"vectors": doubles, "documents": documents.tolist()}
    same(found, slow(links, known, lengths, **options), 2e-3 if with_vectors else 1e-7)
    alone = default(links, question, lengths, vectors=vectors, documents=np.arange(60))
    assert found[0].tolist() != alone[0].tolist()
    assert [x.tolist() for x in alone] == [
        x.tolist() for x in default(links, question, lengths, vectors=vectors)
    ]
    wanted = np.arange(60) % 3 == 0
    hits = default(links, question, lengths, wanted=wanted, documents=documents)
    same(hits, slow(links, known, lengths, wanted=wanted, documents=documents.tolist()))


CODE = "def add(a, b):\n    return a[0] + b.first_one"


@pytest.mark.parametrize("share", [0, 2, 1])
def test_vectors_count_more_if_the_nearest_units_are_code(share: int) -> None:
    question = "winter harbour engine voyage"
    links, lengths = untitled()
    vectors = drawn_vectors(np.random.default_rng(7), (60, 120, 1), 16)
    texts = [CODE if share and at % share == 0 else "A plain note." for at in range(60)]
    own = {"vectors": vectors, "documents": np.arange(60), "files": ([f"id{at}" for at in range(60)], texts)}
    found = default(links, question, lengths, **own)
    options = {"vectors": in_doubles(vectors), "documents": list(range(60)), "texts": texts}
    same(found, slow(links, asked(links, question), lengths, **options), 2e-3)
    before = default(links, question, lengths, **own, numbers={"code_vectors": 0})
    assert (found[1].tolist() != before[1].tolist()) == bool(share)
    own["files"] = ([f"{at}.py" for at in range(60)], texts)  # other rules rank files of code
    found, before = (
        default(links, question, lengths, **own, numbers=numbers) for numbers in (None, {"code_vectors": 0})
    )
    assert found[1].tolist() == before[1].tolist()


@pytest.mark.parametrize(
    ("question", "counts"),
    [("When does my voyage to the harbour end?", True), ("When does the voyage to the harbour end?", False)],
)
def test_in_the_first_person_what_the_person_wrote_counts_more(question: str, counts: bool) -> None:
    links, lengths = untitled()
    texts = [f"{'user' if at % 3 == 0 else 'assistant'}: something" for at in range(60)]
    files = ([f"id{at}" for at in range(60)], texts)
    found = default(links, question, lengths, documents=np.arange(60), files=files)
    known = read(links, question)
    same(found, slow(links, known, lengths, documents=list(range(60)), texts=texts, question=question))
    before = default(links, question, lengths, documents=np.arange(60), files=files, numbers={"own_words": 0})
    first = [sum(texts[unit].startswith("user") for unit in hits[0][:15]) for hits in (found, before)]
    assert first[0] > first[1] if counts else found[1].tolist() == before[1].tolist()


def test_among_many_subjects_the_rest_of_the_document_does_not_count() -> None:
    links, lengths = unlinked(mention=True)
    question, documents = "winter harbour engine voyage", np.arange(60) // 4
    found, before = (default(links, question, lengths, **own) for own in ({"documents": documents}, {}))
    assert found[1].tolist() == before[1].tolist()


def test_subjects_are_counted_over_documents() -> None:
    """Sections of long articles share their titles; the pairs count as if each had its own document."""
    question, documents = "winter harbour engine voyage", np.arange(60) // 4
    chance = np.random.default_rng(14)
    words = ["harbour", "winter", "sledge", "engine", "letter", "museum", "island", "captain", "voyage"]
    texts = [" ".join(chance.choice(words, 7)).capitalize() + f" Maud{(at + 7) % 15}." for at in range(60)]
    links = build([(f"Maud{at // 4}", [text]) for at, text in enumerate(texts)])
    lengths = np.log([len(text) + 1.0 for text in texts])
    known = asked(links, question)
    found = default(links, question, lengths, documents=documents)
    same(found, slow(links, known, lengths, documents=documents.tolist()))
    pairs = default(links, question, lengths, numbers={"direct": 0, "unlinked": 0})
    assert found[1].tolist() == pairs[1].tolist()
    alone = default(links, question, lengths)
    assert alone[1].tolist() != pairs[1].tolist()
    same(alone, slow(links, known, lengths))


def test_documents_are_checked() -> None:
    links, lengths = sections(60)
    with pytest.raises(InputError, match="59 documents for 60 units"):
        default(links, "winter", lengths, documents=np.arange(59))


def test_equal_passages_are_ranked_by_id(large: tuple[kernel.Links, np.ndarray]) -> None:
    """The doubles are not told apart: their scores are equal to the bit, and the smaller id comes first."""
    links, lengths = large
    pairs = 0
    for question in QUESTIONS:
        ids, scores = default(links, question, lengths)
        place = {unit: at for at, unit in enumerate(ids.tolist())}
        for first, second in zip(range(0, COUNT, 10), range(COUNT, len(lengths)), strict=True):
            if first in place and second in place and min(place[first], place[second]) > 1:
                assert place[first] < place[second]
                pairs += scores[place[first]] == scores[place[second]]
    assert pairs > 20


def test_the_demo_s_articles_and_questions() -> None:
    """Real text: each paragraph a unit."""
    rows = [json.loads(line) for line in (POLAR / "corpus.jsonl").read_text("utf-8").splitlines()]
    units: Units = []
    for row in rows:
        spans = sentence_spans(row["text"]).tolist()
        units.append((row["title"], [row["text"][start:end] for start, end in spans]))
    links, lengths = build(units), lengths_of(units)
    lines = (POLAR / "queries.jsonl").read_text("utf-8").splitlines()[:3]
    for question in (json.loads(line)["text"] for line in lines):
        hits = default(links, question, lengths)
        same(hits, slow(links, read(links, question), lengths))


def read(links: kernel.Links, question: str) -> WalkQuestion:
    """What the index knows of a question of real text."""
    words = [word.removesuffix("'s") for word, _ in tokenise(question, "none")]
    phrases = {" ".join(words[a : a + k]) for a in range(len(words)) for k in range(1, 9)}
    ids = [vocabulary(links, name) for name in ("keywords", "names", "subjects")]
    known = (set(_core.lexical_keywords(question)), phrases, phrases)
    both = zip(ids, known, strict=True)
    return WalkQuestion(*[[k for k, word in enumerate(v) if word in own] for v, own in both])
