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
