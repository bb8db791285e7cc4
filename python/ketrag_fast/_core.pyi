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
