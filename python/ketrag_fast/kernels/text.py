"""Words, tokens, sentences and the corpus stage, on strings and NumPy arrays.

Spans and offsets of single texts are in code points, as Python counts. The flat arrays of `corpus`
are in bytes, but for `unit_chars`. Bad arguments raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import (
    I64,
    U8,
    U32,
    U64,
    Packed,
    Report,
    callback,
    count,
    pack_texts,
    utf8,
    whole,
)
from ketrag_fast.kernels.arrays import text as checked

Texts = Sequence[str] | Packed
Csr = tuple[U64, U32]


def pack(texts: Sequence[str]) -> Packed:
    """Strings as (blob, offsets): string i is `blob[offsets[i]:offsets[i + 1]]`, UTF-8."""
    return pack_texts(texts, "texts")


def unpack(blob: U8, offsets: U64) -> list[str]:
    """The strings of (blob, offsets)."""
    data = whole(blob, np.uint8, "blob").tobytes()
    ends: list[int] = whole(offsets, np.uint64, "offsets").tolist()
    if ends and (ends[-1] > len(data) or any(a > b for a, b in pairwise(ends))):
        raise InputError(f"offsets fall, or end after the {len(data)} bytes of the texts")
    try:
        return [data[a:b].decode() for a, b in pairwise(ends)]
    except UnicodeDecodeError as error:
        raise InputError(f"the texts are not UTF-8 between offsets: {error}") from error


def code_points(text: str, offsets: U64) -> I64:
    """Byte offsets into the UTF-8 of `text` as code points; the shape is kept."""
    data = np.frombuffer(utf8(text, "text"), np.uint8)
    places = whole(offsets, np.uint64, "offsets", None)
    if places.size and places.max() > len(data):
        raise InputError(f"offsets holds places beyond the {len(data)} bytes of the text")
    if text.isascii():
        return places.astype(np.int64)
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=before[1:])
    return before[places.astype(np.int64)]


def tokenise(text: str, stop_words: str = "english") -> list[tuple[str, int]]:
    """The keywords of a text (specs 0.4), each with the code point where it starts.

    NFKC, word boundaries of UAX #29, lower case; bigrams of characters for scripts written without
    blanks; no token without a letter or digit; no stop word of the language ("english", "none").
    """
    words, starts, _ = tokenise_many([checked(text, "text")], stop_words, threads=1)
    return list(zip(unpack(*words), code_points(text, starts).tolist(), strict=True))


def tokenise_many(
    texts: Texts, stop_words: str = "english", threads: int = 0, report: Report = None
) -> tuple[Packed, U64, U64]:
    """(words, starts, indptr): those of text i are `indptr[i]:indptr[i + 1]`; starts are bytes."""
    return _core.tokenise(
        pack_texts(texts, "texts"),
        checked(stop_words, "stop_words"),
        count(threads, "threads"),
        report=callback(report),
    )


def stop_words(language: str = "english") -> tuple[list[str], str]:
    """The stop words of a language, and the BLAKE3 hash of the list."""
    return _core.stop_words(checked(language, "language"))


def count_tokens(texts: Texts, encoding: str = "cl100k_base", threads: int = 0, report: Report = None) -> U32:
    """The number of byte-pair tokens of each text: "cl100k_base" or "o200k_base".

    Equal to tiktoken's `encode_ordinary`: special tokens are plain text. (A run of more
    than 8 KiB without any boundary is cut.)
    """
    return _core.count_tokens(
        pack_texts(texts, "texts"),
        checked(encoding, "encoding"),
        count(threads, "threads"),
        report=callback(report),
    )


def encode_tokens(text: str, encoding: str = "cl100k_base") -> U32:
    """The byte-pair tokens of a text."""
    return _core.encode_tokens(checked(text, "text"), checked(encoding, "encoding"))


def truncate(text: str, tokens: int, encoding: str = "cl100k_base") -> str:
    """The longest prefix that a cut after `tokens` tokens leaves, moved back to a whole grapheme."""
    data, most = utf8(text, "text"), count(tokens, "tokens")
    return data[: _core.truncate(text, most, checked(encoding, "encoding"))].decode()


def token_windows(text: str, size: int, overlap: int = 0, encoding: str = "cl100k_base") -> I64:
    """Windows of `size` tokens as spans [n, 2], cut between graphemes (KET-RAG, Alg. 3 line 1).

    With no overlap the windows laid end to end are the text. The last reaches its end.
    """
    found = _core.token_windows(
        checked(text, "text"),
        count(size, "size"),
        count(overlap, "overlap"),
        checked(encoding, "encoding"),
    )
    return code_points(text, found)


def sentence_spans(text: str, splitter: Literal["standard", "uax29"] = "standard") -> I64:
    """The sentences of a text as spans [n, 2], trimmed, in order.

    "standard" is UAX #29 without the breaks after abbreviations and initials, before lower case and
    within wrapped lines; fragments shorter than 15 characters join a neighbour of their paragraph.
    """
    found = _core.sentence_spans(checked(text, "text"), checked(splitter, "splitter"))
    return code_points(text, found)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents cut into chunks, units and sentences; flat arrays in the order of the documents.

    Spans are [n, 2], in bytes of the document's text (`unit_chars`: code points). A title sentence
    has `sent_title` 1 and the span (0, 0).
    """

    chunk_doc: U32
    chunk_span: U32
    chunk_tokens: U32
    unit_chunk: U32
    unit_span: U32
    unit_chars: U32
    unit_tokens: U32
    sent_chunk: U32
    sent_unit: U32
    sent_span: U32
    sent_title: U8


def corpus(
    titles: Texts,
    texts: Texts,
    *,
    cut: Literal["sentences", "windows"] = "sentences",
    tokens: int = 200,
    overlap: int = 0,
    splits: int = 0,
    encoding: str = "cl100k_base",
    splitter: Literal["standard", "uax29"] = "standard",
    threads: int = 0,
    report: Report = None,
) -> Corpus:
    """Cuts documents (specs 0.9, 10-ketrag 1.2 steps 1 and 8).

    `cut="sentences"`: units of whole sentences, at most `tokens` tokens without the title;
    `cut="windows"`: the paper's windows. `splits` > 0 cuts each chunk into units of
    ceil(tokens / 2^splits) tokens. `unit_tokens` is the size of a printed row: title, newline, text.
    """
    arrays = _core.corpus(
        pack_texts(titles, "titles"),
        pack_texts(texts, "texts"),
        checked(cut, "cut"),
        count(tokens, "tokens"),
        count(overlap, "overlap"),
        count(splits, "splits", 2**32 - 1),
        checked(encoding, "encoding"),
        checked(splitter, "splitter"),
        count(threads, "threads"),
        report=callback(report),
    )
    return Corpus(**arrays)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Distinct keywords in the order of their UTF-8 bytes, and the rows (indptr, ids) that hold them.

    `unit_counts` lies beside the ids of `unit_words`. Where units are chunks, `chunk_words` is
    `unit_words`. The words of the title count for every unit and chunk of its document.
    """

    words: Packed
    unit_words: Csr
    unit_counts: U32
    chunk_words: Csr
    sent_words: Csr

    def __len__(self) -> int:
        return len(self.words[1]) - 1


def vocabulary(
    titles: Texts,
    texts: Texts,
    corpus: Corpus,
    stop_words: str = "english",
    threads: int = 0,
    report: Report = None,
) -> Vocabulary:
    """The vocabulary of a corpus (10-ketrag 1.2 steps 2, 9 and 10).

    A word belongs to the unit and to the sentence that hold its first character.
    """
    if not isinstance(corpus, Corpus):
        raise InputError(f"corpus must be a Corpus, not a {type(corpus).__name__}")
    arrays = _core.vocabulary(
        pack_texts(titles, "titles"),
        pack_texts(texts, "texts"),
        whole(corpus.chunk_doc, np.uint32, "corpus.chunk_doc"),
        whole(corpus.chunk_span, np.uint32, "corpus.chunk_span", 2),
        whole(corpus.unit_chunk, np.uint32, "corpus.unit_chunk"),
        whole(corpus.unit_span, np.uint32, "corpus.unit_span", 2),
        whole(corpus.sent_chunk, np.uint32, "corpus.sent_chunk"),
        whole(corpus.sent_span, np.uint32, "corpus.sent_span", 2),
        whole(corpus.sent_title, np.uint8, "corpus.sent_title"),
        checked(stop_words, "stop_words"),
        count(threads, "threads"),
        report=callback(report),
    )
    return Vocabulary(**arrays)
