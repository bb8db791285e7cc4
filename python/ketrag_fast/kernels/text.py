"""Keywords, tokens and sentences of strings, and corpora cut into units, as NumPy arrays.

Spans and offsets of single texts are in code points, like Python's indices. The flat arrays of `corpus`
are in bytes, except `unit_chars`. Invalid arguments raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from ketrag_fast.records import dataclass

Texts = Sequence[str] | Packed
Csr = tuple[U64, U32]


def pack(texts: Sequence[str]) -> Packed:
    """Return strings as (blob, offsets): string i is `blob[offsets[i]:offsets[i + 1]]`, UTF-8.

    Examples:
        >>> blob, offsets = pack(["Oslo", "Ålesund"])
        >>> offsets.tolist()
        [0, 4, 12]
    """
    return pack_texts(texts, "texts")


def unpack(blob: U8, offsets: U64) -> list[str]:
    """Return the strings of (blob, offsets).

    Examples:
        >>> unpack(*pack(["Oslo", "Ålesund"]))
        ['Oslo', 'Ålesund']
    """
    data = whole(blob, np.uint8, "blob").tobytes()
    ends: list[int] = whole(offsets, np.uint64, "offsets").tolist()
    if ends and (ends[-1] > len(data) or any(a > b for a, b in pairwise(ends))):
        raise InputError(f"offsets must ascend and end within the {len(data)} bytes of the texts")
    try:
        return [data[a:b].decode() for a, b in pairwise(ends)]
    except UnicodeDecodeError as error:
        raise InputError(f"the texts are not UTF-8 between offsets: {error}") from error


def code_points(text: str, offsets: U64) -> I64:
    """Convert byte offsets into the UTF-8 of `text` to code points; the shape stays the same."""
    data = np.frombuffer(utf8(text, "text"), np.uint8)
    places = whole(offsets, np.uint64, "offsets", None)
    if places.size and places.max() > len(data):
        raise InputError(f"offsets must not exceed the {len(data)} bytes of the text")
    if text.isascii():
        return places.astype(np.int64)
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=before[1:])
    return before[places.astype(np.int64)]


def tokenise(text: str, stop_words: str = "english") -> list[tuple[str, int]]:
    """Return the keywords of a text, each with the code point at which it starts.

    Text is normalised to NFKC, split at the word boundaries of UAX #29, and lower-cased; scripts without
    spaces give character bigrams. Tokens
    without a letter or digit and stop words of the language are dropped ("none" drops none). In
    languages other than English, named ("german") or detected ("auto"), keywords are stems ("haus@de").

    Examples:
        >>> tokenise("The ships sailed to Oslo.")
        [('ships', 4), ('sailed', 10), ('oslo', 20)]
    """
    words, starts, _ = tokenise_many([checked(text, "text")], stop_words, threads=1)
    return list(zip(unpack(*words), code_points(text, starts).tolist(), strict=True))


def tokenise_many(
    texts: Texts, stop_words: str = "english", threads: int = 0, report: Report = None
) -> tuple[Packed, U64, U64]:
    """Return (words, starts, indptr): the keywords of text i are `indptr[i]:indptr[i + 1]`.

    `starts` are byte offsets.
    """
    return _core.tokenise(
        pack_texts(texts, "texts"),
        checked(stop_words, "stop_words"),
        count(threads, "threads"),
        report=callback(report),
    )


def count_tokens(texts: Texts, encoding: str = "cl100k_base", threads: int = 0, report: Report = None) -> U32:
    """Return the number of byte-pair tokens of each text; encodings are "cl100k_base" and "o200k_base".

    The count equals that of tiktoken's `encode_ordinary`, which treats special tokens as plain text. (A run
    of more than 8 KiB without any boundary is cut.)

    Examples:
        >>> count_tokens(["Nansen built the Fram.", ""]).tolist()
        [6, 0]
    """
    return _core.count_tokens(
        pack_texts(texts, "texts"),
        checked(encoding, "encoding"),
        count(threads, "threads"),
        report=callback(report),
    )


def sentence_spans(text: str, splitter: Literal["standard", "uax29"] = "standard") -> I64:
    """Return the sentences of a text as spans [n, 2], trimmed, in order.

    "standard" ends a sentence at a line break, or at a punctuation mark before a space (in scripts without
    spaces the space is not required). It does not end one inside backticks, after abbreviations, initials,
    ordinals and list markers, before lower case, or within wrapped lines. Fragments shorter than 15
    characters are merged with a sentence of their paragraph. "uax29" uses the boundaries of UAX #29.

    Examples:
        >>> sentence_spans("Dr. Nansen built the Fram. It sailed north in 1893.").tolist()
        [[0, 26], [27, 51]]
    """
    spans = _core.sentence_spans(checked(text, "text"), checked(splitter, "splitter"))
    return code_points(text, spans)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents cut into chunks, units and sentences, as flat arrays in document order.

    Spans are [n, 2], in bytes of the document's text (`unit_chars`: code points). A title sentence
    has `sent_title` 1 and the span (0, 0).

    Examples:
        >>> cut = corpus(["Fram"], ["Nansen built the Fram."])
        >>> cut.chunk_doc.tolist(), cut.unit_span.tolist()
        ([0], [[0, 22]])
    """

    chunk_doc: U32
    chunk_span: U32
    chunk_tokens: U32
    unit_chunk: U32
    unit_span: U32
    unit_chars: U32
    unit_tokens: U32
    unit_before: Packed
    unit_after: Packed
    unit_lines: U32
    unit_keys: U64
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
    """Cut documents into chunks, units and sentences.

    Args:
        cut: "sentences" combines whole paragraphs, list items and table rows to units of at most `tokens`
            tokens, title excluded, and cuts longer paragraphs between sentences; "windows" makes the fixed
            windows of KET-RAG, Algorithm 3.
        splits: if positive, each chunk is cut into units of ceil(tokens / 2^splits) tokens.

    Returns:
        A `Corpus`. Its `unit_tokens` are the sizes of printed rows: title, newline, and text with
        `unit_before` and `unit_after`, the surrounding lines of a list, table or code block that the unit
        continues.

    Examples:
        >>> cut = corpus(["Fram"], ["Nansen built the Fram. It sailed north."], tokens=50)
        >>> cut.unit_chars.tolist(), cut.unit_tokens.tolist()
        ([[0, 39]], [13])
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
    """Distinct keywords in UTF-8 byte order, and the rows (indptr, ids) of units, chunks and sentences.

    `unit_counts` is parallel to the ids of `unit_words`. If units are chunks, `chunk_words` is
    `unit_words`. Keywords of the title count for every unit and chunk of the document. `chunk_language` has
    the number of each chunk's language (its row in the table of languages), or is empty if all are English.

    Examples:
        >>> titles, texts = ["Fram"], ["Nansen built the Fram."]
        >>> words = vocabulary(titles, texts, corpus(titles, texts))
        >>> len(words), words.unit_counts.tolist()
        (3, [1, 2, 1])
    """

    words: Packed
    unit_words: Csr
    unit_counts: U32
    chunk_words: Csr
    sent_words: Csr
    chunk_language: U8

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
    """Return the keywords of a corpus, with the units, chunks and sentences that contain them.

    A keyword belongs to the unit and to the sentence that contain its first character.

    Examples:
        >>> titles, texts = ["Fram"], ["Nansen built the Fram."]
        >>> words = vocabulary(titles, texts, corpus(titles, texts))
        >>> unpack(*words.words)
        ['built', 'fram', 'nansen']
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
