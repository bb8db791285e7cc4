"""Words, tokens, sentences and the corpus stage, on strings and NumPy arrays.

Spans and offsets of single texts are in code points, as Python counts. The flat arrays of `corpus`
are in bytes, but for `unit_chars`. Bad arguments raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, cast

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import I64, U8, U32, U64, Report

Packed = tuple[U8, U64]
Texts = Sequence[str] | Packed
Csr = tuple[U64, U32]


def _bytes(text: str, place: str = "the text") -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{place} holds half a surrogate pair at character {error.start}") from None


def pack(texts: Sequence[str]) -> Packed:
    """Strings as (blob, offsets): string i is `blob[offsets[i]:offsets[i + 1]]`, UTF-8."""
    parts = [_bytes(text, f"text {i}") for i, text in enumerate(texts)]
    offsets = np.zeros(len(parts) + 1, np.uint64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


def unpack(blob: U8, offsets: U64) -> list[str]:
    """The strings of (blob, offsets)."""
    data, ends = blob.tobytes(), offsets.tolist()
    return [data[a:b].decode() for a, b in pairwise(ends)]


def _packed(texts: Texts) -> Packed:
    if isinstance(texts, str):
        raise InputError("expected a list of texts, not one text")
    if isinstance(texts, tuple) and len(texts) == 2 and isinstance(texts[0], np.ndarray):
        return texts
    return pack(cast("Sequence[str]", texts))


def code_points(text: str, offsets: U64) -> I64:
    """Byte offsets into the UTF-8 of `text` as code points; the shape is kept."""
    if text.isascii():
        return offsets.astype(np.int64)
    data = np.frombuffer(text.encode(), np.uint8)
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=before[1:])
    return before[offsets.astype(np.int64)]


def tokenise(text: str, stop_words: str = "english") -> list[tuple[str, int]]:
    """The keywords of a text (specs 0.4), each with the code point where it starts.

    NFKC, word boundaries of UAX #29, lower case; bigrams of characters for scripts written without
    blanks; no token without a letter or digit; no stop word of the language ("english", "none").
    """
    words, starts, _ = tokenise_many([text], stop_words, threads=1)
    return list(zip(unpack(*words), code_points(text, starts).tolist(), strict=True))


def tokenise_many(
    texts: Texts, stop_words: str = "english", threads: int = 0, report: Report = None
) -> tuple[Packed, U64, U64]:
    """(words, starts, indptr): those of text i are `indptr[i]:indptr[i + 1]`; starts are bytes."""
    return _core.tokenise(_packed(texts), stop_words, threads, report=report)


def stop_words(language: str = "english") -> tuple[list[str], str]:
    """The stop words of a language, and the BLAKE3 hash of the list."""
    return _core.stop_words(language)


def count_tokens(texts: Texts, encoding: str = "cl100k_base", threads: int = 0, report: Report = None) -> U32:
    """The number of byte-pair tokens of each text: "cl100k_base" or "o200k_base".

    Equal to tiktoken's `encode_ordinary`: special tokens are plain text. (A run of more
    than 8 KiB without any boundary is cut.)
    """
    return _core.count_tokens(_packed(texts), encoding, threads, report=report)


def encode_tokens(text: str, encoding: str = "cl100k_base") -> U32:
    """The byte-pair tokens of a text."""
    _bytes(text)
    return _core.encode_tokens(text, encoding)


def truncate(text: str, tokens: int, encoding: str = "cl100k_base") -> str:
    """The longest prefix that a cut after `tokens` tokens leaves, moved back to a whole grapheme."""
    end = _core.truncate(text, _natural(tokens, "tokens"), encoding) if _bytes(text) else 0
    return _bytes(text)[:end].decode()


def token_windows(text: str, size: int, overlap: int = 0, encoding: str = "cl100k_base") -> I64:
    """Windows of `size` tokens as spans [n, 2], cut between graphemes (KET-RAG, Alg. 3 line 1).

    With no overlap the windows laid end to end are the text. The last reaches its end.
    """
    _bytes(text)
    size, overlap = _natural(size, "size"), _natural(overlap, "overlap")
    return code_points(text, _core.token_windows(text, size, overlap, encoding))


def sentence_spans(text: str, splitter: Literal["standard", "uax29"] = "standard") -> I64:
    """The sentences of a text as spans [n, 2], trimmed, in order.

    "standard" is UAX #29 without the breaks after abbreviations and initials, before lower case and
    within wrapped lines; fragments shorter than 15 characters join a neighbour of their paragraph.
    """
    _bytes(text)
    return code_points(text, _core.sentence_spans(text, splitter))


def _natural(value: int, name: str) -> int:
    if value < 0:
        raise InputError(f"{name} must not be negative, and is {value}")
    return value


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
        _packed(titles),
        _packed(texts),
        cut,
        _natural(tokens, "tokens"),
        _natural(overlap, "overlap"),
        _natural(splits, "splits"),
        encoding,
        splitter,
        threads,
        report=report,
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
    arrays = _core.vocabulary(
        _packed(titles),
        _packed(texts),
        corpus.chunk_doc,
        corpus.chunk_span,
        corpus.unit_chunk,
        corpus.unit_span,
        corpus.sent_chunk,
        corpus.sent_span,
        corpus.sent_title,
        stop_words,
        threads,
        report=report,
    )
    return Vocabulary(**arrays)
