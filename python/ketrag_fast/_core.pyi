"""The compiled core. Faces are thin: arrays are flat and contiguous, errors are `ketrag_fast.errors`.

Strings cross as (blob: uint8, offsets: uint64): string i is blob[offsets[i]:offsets[i+1]], UTF-8.
Compressed rows cross as (indptr: uint64[rows+1], indices: uint32).
"""

from collections.abc import Callable
from os import PathLike
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

# the native sentence encoder
@final
class Encoder:
    @staticmethod
    def open(
        folder: str | PathLike[str],
        *,
        precision: str = "auto",
        kernel: str = "auto",
        threads: int = 0,
        report: Report = None,
    ) -> Encoder: ...
    def encode(
        self, texts: U8, offsets: U64, *, prompt: str = "", threads: int = 0, report: Report = None
    ) -> F32: ...
    def lengths(
        self, texts: U8, offsets: U64, *, prompt: str = "", threads: int = 0, report: Report = None
    ) -> U64: ...
    @property
    def dimension(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def precision(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def note(self) -> str | None: ...
    @property
    def prompts(self) -> list[tuple[str, str]]: ...
    @property
    def default_prompt(self) -> str | None: ...
    def fingerprint(self, *, report: Report = None) -> str: ...

def encoder_kernels() -> list[str]: ...
