"""The compiled core. Faces are thin: arrays are flat and contiguous, errors are `ketrag_fast.errors`.

Strings cross as (blob: uint8, offsets: uint64): string i is blob[offsets[i]:offsets[i+1]], UTF-8.
Compressed rows cross as (indptr: uint64[rows+1], indices: uint32).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Report = Callable[[int, int], bool | None] | None

__version__: str

# text: words, tokens, windows, sentences, the corpus and its vocabulary
def tokenise(
    texts: tuple[U8, U64], stop: str = "english", threads: int = 0, *, report: Report = None
) -> tuple[tuple[U8, U64], U64, U64]: ...
def stop_words(language: str = "english") -> tuple[list[str], str]: ...
def count_tokens(
    texts: tuple[U8, U64], encoding: str = "cl100k_base", threads: int = 0, *, report: Report = None
) -> U32: ...
def encode_tokens(text: str, encoding: str = "cl100k_base") -> U32: ...
def truncate(text: str, tokens: int, encoding: str = "cl100k_base") -> int: ...
def token_windows(
    text: str, size: int, overlap: int = 0, encoding: str = "cl100k_base", *, report: Report = None
) -> U64: ...
def sentence_spans(text: str, splitter: str = "standard", *, report: Report = None) -> U64: ...
def corpus(
    titles: tuple[U8, U64],
    texts: tuple[U8, U64],
    cut: str = "sentences",
    tokens: int = 200,
    overlap: int = 0,
    splits: int = 0,
    encoding: str = "cl100k_base",
    splitter: str = "standard",
    threads: int = 0,
    *,
    report: Report = None,
) -> dict[str, NDArray[np.uint32]]: ...
def vocabulary(
    titles: tuple[U8, U64],
    texts: tuple[U8, U64],
    chunk_doc: U32,
    chunk_span: U32,
    unit_chunk: U32,
    unit_span: U32,
    sent_chunk: U32,
    sent_span: U32,
    sent_title: U8,
    stop: str = "english",
    threads: int = 0,
    *,
    report: Report = None,
) -> dict[str, object]: ...
