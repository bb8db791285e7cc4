"""The compiled core. Faces are thin: arrays are flat and contiguous, errors are `ketrag_fast.errors`.

Strings cross as (blob: uint8, offsets: uint64): string i is blob[offsets[i]:offsets[i+1]], UTF-8.
Compressed rows cross as (indptr: uint64[rows+1], indices: uint32).
"""

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Report = Callable[[int, int], bool | None] | None

__version__: str

# Co-occurrence neighbours and the KNN graph.
def cooccurrence_knn(
    indptr: U64,
    indices: U32,
    columns: int,
    k: int,
    *,
    max_df_ratio: float | None = None,
    allow_zero: bool = False,
    rows: tuple[int, int] | None = None,
    threads: int = 0,
    kernel: str = "auto",
    report: Report = None,
) -> tuple[U32, U32]: ...
def cooccurrence_kernels() -> list[str]: ...
def knn_graph(lexical: U32, semantic: U32) -> tuple[U64, U32]: ...

# rank, the keyword graph, and the printed context
def pagerank(
    indptr: U64,
    indices: U32,
    weights: F64 | None = None,
    restart: F64 | None = None,
    *,
    teleport: float = 0.15,
    until: str = "tolerance",
    tolerance: float = 1e-9,
    steps: int = 0,
    lazy: bool = False,
    threads: int = 0,
    report: Report = None,
) -> F64: ...
def core_count(n: int, ratio: float) -> int: ...
def select_ranked(scores: F64, count: int) -> U32: ...
def select_uniform(n: int, count: int, seed: int, stage: str) -> U32: ...
def transpose(
    indptr: U64, indices: U32, columns: int, *, threads: int = 0, report: Report = None
) -> tuple[U64, U32]: ...
def renumber(indptr: U64, indices: U32, columns: int, kept: U32) -> tuple[U64, U32]: ...
def bipartite(
    indptr: U64,
    indices: U32,
    words: int,
    *,
    min_df: int = 1,
    max_df_ratio: float = 1.0,
    threads: int = 0,
    report: Report = None,
) -> tuple[U64, U32, U64, U32, U32]: ...
def split_budget(budget: int, share: float) -> tuple[int, int]: ...
def render(
    candidates: U32,
    blob: U8,
    offsets: U64,
    n_tokens: U32,
    budget: int,
    *,
    titles: tuple[U8, U64, U32] | None = None,
    style: str = "cited",
    fill_policy: str = "first_overflow_stops",
    oversize_policy: str = "truncate",
    encoding: str = "cl100k_base",
) -> tuple[str, int, U32, U64, U64, U64]: ...

# The walk (rust/py/walk.rs)
def links_build(
    titles: U8,
    title_offsets: U64,
    texts: U8,
    text_offsets: U64,
    sentences: U8,
    sentence_offsets: U64,
    first_sentence: U64,
    *,
    threads: int = 0,
    report: Report = None,
) -> dict[str, U8 | U32 | U64 | F64]: ...
def links_bm25(
    links: dict[str, U8 | U32 | U64 | F64],
    questions: U8,
    question_offsets: U64,
    top: int,
    *,
    threads: int = 0,
    report: Report = None,
) -> tuple[U64, U32, F64]: ...
def walk_rank(
    links: dict[str, U8 | U32 | U64 | F64],
    questions: U8,
    question_offsets: U64,
    top: int,
    *,
    unit_vectors: F32 | None = None,
    sentence_vectors: F32 | None = None,
    question_vectors: F32 | None = None,
    exact: bool = False,
    threads: int = 0,
    report: Report = None,
) -> tuple[U64, U32, F64]: ...

# the published tokenisations
@final
class Punkt:
    def __new__(cls, abbreviations: str, collocations: str, starters: str, contexts: str) -> Punkt: ...
    def sentences(self, text: str) -> list[str]: ...
    def words(self, text: str) -> list[str]: ...
    def cooccurrence(
        self, stop_words: list[str], texts: list[str], *, threads: int = 0, report: Report = None
    ) -> list[list[str]]: ...
    def keywords(
        self, stop_words: list[str], texts: list[str], *, threads: int = 0, report: Report = None
    ) -> list[list[tuple[str, list[str]]]]: ...

def treebank_words(sentence: str) -> list[str]: ...

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

# Vectors, neighbours, the built-in embedder and its channels (rust/py/vectors.rs).
_Codes = tuple[NDArray[np.int8], F32, F32]

def vector_top_k(
    vectors: F32,
    queries: F32,
    k: int,
    *,
    codes: _Codes | None = None,
    ids: U32 | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> tuple[U32, F64]: ...
def normalise_vectors(vectors: F32) -> F32: ...
def quantise_vectors(vectors: F32, *, threads: int = 0, report: Report = None) -> _Codes: ...
def cosine_knn(
    vectors: F32,
    k: int,
    *,
    exclude: tuple[U64, U32] | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> tuple[U32, F64]: ...
def keyword_means(
    indptr: U64,
    indices: U32,
    sentences: F32,
    *,
    unit: bool = False,
    threads: int = 0,
    report: Report = None,
) -> F32: ...
def fit_embedder(
    indptr: U64,
    indices: U32,
    repeats: U32,
    words: int,
    *,
    dims: int = 128,
    idf_power: int = 2,
    rounds: int = 5,
    sample: int = 20_000,
    seed: int = 42,
    threads: int = 0,
    report: Report = None,
) -> F32: ...
def embed_rows(
    basis: F32,
    indptr: U64,
    indices: U32,
    repeats: U32,
    *,
    threads: int = 0,
    report: Report = None,
) -> F32: ...
def keyword_pool(
    keywords: F32,
    indptr: U64,
    indices: U32,
    units: F32,
    unit_tokens: U32,
    query: F32,
    limit: int,
    *,
    most_seeds: int | None = None,
    codes: _Codes | None = None,
    simd: str = "auto",
) -> tuple[U32, F64, U32, U32, F64, int]: ...
def knng_order(
    units: F32,
    indptr: U64,
    indices: U32,
    unit_tokens: U32,
    query: F32,
    limit: int,
    *,
    simd: str = "auto",
) -> tuple[U32, F64, U32]: ...
def fuse_ranks(lists: list[U32], *, constant: float = 60.0) -> tuple[U32, F64]: ...
def simd_levels() -> list[str]: ...
