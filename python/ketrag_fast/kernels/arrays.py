"""What the kernels take and give, and the checks of arrays that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast.errors import InputError

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Report = Callable[[int, int], bool | None] | None
"""Called with (done, total) some twenty times a second; False stops the kernel (`Cancelled`)."""


def whole(values: ArrayLike, kind: type[np.unsignedinteger[Any]], name: str) -> NDArray[Any]:
    """One row of integers as `kind`; `InputError` where that would change a value."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be one row of integers, not {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() > np.iinfo(kind).max):
        raise InputError(f"{name} holds numbers outside 0..{np.iinfo(kind).max}")
    return np.ascontiguousarray(array, dtype=kind)


def real(values: ArrayLike, name: str) -> F64:
    """One row of numbers as float64."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, not shape {array.shape}")
    return array
