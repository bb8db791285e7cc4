"""The text kernels against plain versions, golden files and their own promises."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import passages as plain_passages
from tests.oracles import text as plain
from tests.support import all_kernels as kernel
from tests.support.effort import is_stopped

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.text import pack
from ketrag_fast.types.locations import MARKS

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "cl100k.json").read_text())
STOP = set(kernel.stop_words("english")[0])
PIECES = [
    *"aBcxyz019 .,'!?;:-_\n\t",
    *("é", "ß", "ﬁ", "e\u0301", "東京", "都", "カメラ", "ภาษา", "한국", "سلام", "Мир"),
    *("👩‍👧", "\0", "\u0085", "Dr. ", "The ", "\n\n"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
PHRASES = [
    *("Mr. Fox ran. ", "The end came! ", "Éire is an island in the sea. "),
    *("and so on ", "U.S. 5 ", "\n\n", "中文字。"),
]
PROSE = st.lists(st.sampled_from(PHRASES), max_size=30).map("".join)


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_counts_are_those_of_tiktoken(encoding: str) -> None:
    texts = [row["text"] for row in GOLDEN]
    assert kernel.count_tokens(texts, encoding).tolist() == [row[encoding]["count"] for row in GOLDEN]


@settings(max_examples=50)
@given(TEXTS)
def test_words_are_those_of_the_plain_version(text: str) -> None:
    assert [word for word, _ in kernel.tokenise(text)] == plain.words(text, STOP)


@settings(max_examples=50)
@given(TEXTS)
def test_words_start_where_they_say(text: str) -> None:
    starts = [start for _, start in kernel.tokenise(text, "none")]
    assert starts == sorted(starts)
    for word, start in kernel.tokenise(text, "none"):
        assert plain.words(text[start:], []) and plain.words(text[start:], [])[0].startswith(word[:1])


@settings(max_examples=50)
@given(TEXTS | PROSE, st.sampled_from(["standard", "uax29"]))
def test_sentences_hold_all_but_blanks(text: str, splitter: str) -> None:
    reached = 0
    for a, b in kernel.sentence_spans(text, splitter).tolist():
        assert a >= reached and text[reached:a].strip() == ""
        assert a < b
        reached = b
    assert text[reached:].strip() == ""


def test_sentences_of_english() -> None:
    text = "Dr. J. K. Rowling, of St. Ives, wrote vol. 3. It sold in the U.S. She moved.\n\nA new start"
    parts = [text[a:b] for a, b in kernel.sentence_spans(text)]
    first = "Dr. J. K. Rowling, of St. Ives, wrote vol. 3."
    assert parts == [first, "It sold in the U.S. She moved.", "A new start"]


def _count(text: str) -> int:
    return int(kernel.count_tokens([text])[0])


LINES = [
    *("Mr. Fox ran. ", "The end came! ", "and so on ", "Steps to do:", "\n", "\n\n", "# A head\n"),
    *("- a thing to do\n", "  - an inner one of it\n", "1. go there\n", "2. come back\n", "> quoted words\n"),
    *("| name | size |\n|---|---|\n", "| cup | 5 |\n", "Name\tSize\n", "cup\t5\n", "red\t6\n"),
    *("```py\n", "```\n", "def f(x):\n", "    y = x + 1\n", "        return y\n", "}\n"),
]


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(LINES), max_size=40).map("".join),
    st.integers(12, 60),
    st.sampled_from([None, "markdown", "code"]),
)
def test_passages_are_those_of_the_plain_version(text: str, most: int, kind: str | None) -> None:
    if not text.strip():
        return
    marks = None if kind is None else np.array([[0, 0, len(text), MARKS.index(kind), 0]], np.uint32)
    blocks = _core.text_blocks(text, marks)

    def sentences(part: str) -> list[tuple[int, int]]:
        return [(int(a), int(b)) for a, b in kernel.sentence_spans(part).tolist()]

    try:
        wanted = plain_passages.passages(text, blocks, sentences, most, _count)
    except plain_passages.TooLong:
        return
    packed = pack([text])
    found = _core.corpus(pack([""]), packed, "sentences", most, marks=marks)
    before, after = kernel.unpack(*found["unit_before"]), kernel.unpack(*found["unit_after"])
    spans = [(int(a), int(b)) for a, b in found["unit_chars"].tolist()]
    assert list(zip(spans, before, after, strict=True)) == wanted


def test_lines_of_the_source() -> None:
    text = "One é.\n\nTwo.\nThree."
    marks = np.array([[0, 0, len(text), MARKS.index("lines"), 7]], np.uint32)
    packed = pack([text])
    found = _core.corpus(pack([""]), packed, "sentences", 4, marks=marks)
    assert found["unit_lines"].tolist() == [[7, 7], [9, 10]]
    assert not _core.corpus(pack([""]), packed)["unit_lines"].any()


@pytest.mark.parametrize("mark", [(0, 0, 4, 9, 0), (0, 9, 9, 0, 0), (0, 3, 2, 0, 0)])
def test_wrong_marks_are_refused(mark: tuple[int, ...]) -> None:
    packed = pack(["text"])
    with pytest.raises(InputError, match="mark"):
        _core.corpus(packed, packed, marks=np.array([mark], np.uint32))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(["", "Éire", "A title/", "The"]), PROSE | TEXTS), max_size=40),
    st.sampled_from(["sentences", "windows"]),
    st.integers(0, 3),
)
def test_corpus_and_vocabulary(docs: list[tuple[str, str]], cut: str, splits: int) -> None:
    titles, texts = [t for t, _ in docs], [x for _, x in docs]
    corpora = [kernel.corpus(titles, texts, cut=cut, tokens=16, splits=splits, threads=n) for n in (1, 2, 5)]
    corpus = corpora[0]
    for name in kernel.Corpus.__dataclass_fields__:
        for other in corpora[1:]:
            mine, theirs = getattr(corpus, name), getattr(other, name)
            pairs = zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]
            for one, two in pairs:
                np.testing.assert_array_equal(one, two)
    docs_of = corpus.chunk_doc[corpus.unit_chunk] if len(corpus.unit_chunk) else []
    rows = []
    contexts = kernel.unpack(*corpus.unit_before), kernel.unpack(*corpus.unit_after)
    units = (docs_of, corpus.unit_span, corpus.unit_chars, corpus.unit_tokens, *contexts)
    for doc, (a, b), (c, d), size, before, after in zip(*units, strict=True):
        text = texts[doc].encode()[a:b].decode()
        assert text == texts[doc][c:d]
        assert size == _count((f"{titles[doc]}\n" if titles[doc] else "") + before + text + after)
        rows.append((titles[doc], text))
    assert sorted(set(corpus.chunk_doc.tolist())) == [i for i, x in enumerate(texts) if x.strip()]

    found = [kernel.vocabulary(titles, texts, corpus, threads=n) for n in (1, 2, 5)]
    for other in found[1:]:
        assert kernel.unpack(*other.words) == kernel.unpack(*found[0].words)
        np.testing.assert_array_equal(other.unit_words[1], found[0].unit_words[1])
        np.testing.assert_array_equal(other.sent_words[1], found[0].sent_words[1])
    if splits == 0:
        words, counts = plain.vocabulary(
            [plain.words(title, STOP) for title, _ in rows], [plain.words(text, STOP) for _, text in rows]
        )
        indptr, ids = found[0].unit_words
        assert kernel.unpack(*found[0].words) == words
        own = [
            dict(zip(ids[a:b].tolist(), found[0].unit_counts[a:b].tolist(), strict=True))
            for a, b in pairwise(indptr)
        ]
        assert own == counts
        assert found[0].chunk_words[1] is found[0].unit_words[1]
    assert len(found[0].sent_words[0]) == len(corpus.sent_chunk) + 1


def test_packing() -> None:
    texts = ["", "a", "é中👍", "\0"]
    assert kernel.unpack(*kernel.pack(texts)) == texts
    assert kernel.unpack(*kernel.pack([])) == []


def test_stop_words_have_a_hash() -> None:
    words, digest = kernel.stop_words()
    assert words == sorted(words) and len(digest) == 64
    assert kernel.stop_words("none")[0] == []


def test_wrong_arguments_raise() -> None:
    corpus = kernel.corpus(["t"], ["Some text."])
    blob, _ = kernel.pack(["é"])
    for call in (
        lambda: kernel.tokenise("x", "klingon"),
        lambda: kernel.count_tokens(["x"], "gpt2"),
        lambda: kernel.count_tokens("x"),
        lambda: kernel.count_tokens((blob, np.array([0, 1, 2], np.uint64))),
        lambda: kernel.count_tokens((blob[:1], np.array([0, 1], np.uint64))),
        lambda: kernel.count_tokens((np.zeros(2, np.float32), np.array([0, 2], np.uint64))),
        lambda: kernel.count_tokens(["\ud800"]),
        lambda: kernel.sentence_spans("x", "punkt"),
        lambda: kernel.corpus(["a", "b"], ["x"]),
        lambda: kernel.corpus(["a"], ["x"], tokens=0),
        lambda: kernel.corpus(["a"], ["x"], cut="lines"),
        lambda: kernel.vocabulary(["t"], [""], corpus),
        lambda: kernel.vocabulary([], [], corpus),
        lambda: _core.vocabulary(
            kernel.pack(["t"]),
            kernel.pack(["Some text."]),
            corpus.chunk_doc,
            np.zeros((1, 3), np.uint32),
            corpus.unit_chunk,
            corpus.unit_span,
            corpus.sent_chunk,
            corpus.sent_span,
            corpus.sent_title,
        ),
    ):
        with pytest.raises(InputError):
            call()


def test_a_long_count_can_be_stopped() -> None:
    text = "some words of text " * 2000
    is_stopped(lambda size, report: kernel.count_tokens([text] * size, threads=1, report=report), 400)
