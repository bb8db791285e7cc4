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
