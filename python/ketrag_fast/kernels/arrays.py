"""Conversion of arguments: all kernels read arrays, numbers and texts through these functions.

Conversion may change the width of an integer, if its value stays the same, and the precision of a float. It
rejects ids that are out of range, floats, booleans and strings in place of integers, masked arrays, NaN and
infinity, with an `InputError` that names the parameter.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ketrag_fast.errors import InputError

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Packed = tuple[U8, U64]
Csr = tuple[ArrayLike, ArrayLike]
"""Compressed rows: (indptr uint64[rows + 1], indices uint32), ids ascending in each row."""
Report = Callable[[int, int], bool | None] | None
"""Progress callback: called with (done, total) about twenty times a second.

Returning False stops the kernel.
"""

MOST = 2**63 - 1
"""Largest count that any kernel accepts. Kernels with lower limits check them."""


def whole(values: ArrayLike, kind: type[np.integer[Any]], name: str, dims: int | None = 1) -> NDArray[Any]:
    """Return integers as type `kind` with `dims` dimensions (None: any).

    Raises InputError if a value would change.
    """
    if _is(values, kind, dims):
        return cast("NDArray[Any]", values)
    array = _array(values, name, dims)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} must be integers, not {array.dtype}")
    if array.size and not np.can_cast(array.dtype, kind):
        limits = np.iinfo(kind)
        if array.min() < limits.min or array.max() > limits.max:
            raise InputError(f"{name} must be within {limits.min}..{limits.max}")
    return np.require(array.astype(kind, copy=False), requirements=["C", "A"])


def marks(values: ArrayLike, name: str) -> U8:
    """Return a one-dimensional array of booleans, one byte each."""
    array = _array(values, name, 1)
    if array.size and array.dtype.kind != "b":
        raise InputError(f"{name} must be booleans, not {array.dtype}")
    return np.require(array.astype(np.uint8), requirements=["C", "A"])


def real(values: ArrayLike, name: str) -> F64:
    """Return a one-dimensional array as float64."""
    return _floats(values, np.float64, name, 1)


def vectors(values: ArrayLike, name: str, dims: int = 2) -> F32:
    """Return a matrix (or, with `dims` 1, one row) as float32."""
    return _floats(values, np.float32, name, dims)


def rows(value: Csr, name: str) -> tuple[U64, U32]:
    """Return compressed rows. The kernel checks that they fit together."""
    indptr, indices = _several(value, name, ("indptr", "indices"))
    return whole(indptr, np.uint64, f"{name} (indptr)"), whole(indices, np.uint32, f"{name} (indices)")


def codes(value: Any, name: str = "codes") -> tuple[NDArray[np.int8], F32, F32]:
    """Return byte codes of vectors: codes [n, d], scale [n], residual [n]."""
    values, scale, residual = _several(value, name, ("codes", "scale", "residual"))
    return (
        whole(values, np.int8, name, 2),
        vectors(scale, f"{name} (scale)", 1),
        vectors(residual, f"{name} (residual)", 1),
    )


def count(value: int, name: str, most: int = MOST) -> int:
    """Return an integer from 0 to `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be an integer, not {_short_value(value)}")
    if number < 0:
        raise InputError(f"{name} must not be negative, got {_short_value(number)}")
    if number > most:
        raise InputError(f"{name} must be at most {most}, got {_short_value(number)}")
    return number


def number(value: float, name: str) -> float:
    """Return a finite float."""
    kinds = (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise InputError(f"{name} must be a number, not {_short_value(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = float("inf")
    if result - result != 0.0:
        raise InputError(f"{name} must be a finite number, not {_short_value(value)}")
    return result


def flag(value: bool, name: str) -> bool:
    """Return a boolean. Other truthy or falsy values are rejected."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, not {_short_value(value)}")
    return bool(value)


def text(value: str, name: str) -> str:
    """Return a text that can be encoded as UTF-8."""
    utf8(value, name)
    return value


def utf8(value: str, name: str) -> bytes:
    """Return a text as UTF-8."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, not {_short_value(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name} has a lone surrogate at character {error.start}") from None


def texts(values: Sequence[str], name: str) -> list[str]:
    """Return a list of texts that can be encoded as UTF-8."""
    if isinstance(values, str | bytes):
        raise InputError(f"{name} must be a list of texts, not one text")
    try:
        items = list(values)
    except TypeError:
        raise InputError(f"{name} must be a list of texts, not {_short_value(values)}") from None
    for i, value in enumerate(items):
        utf8(value, f"text {i} of {name}")
    return items


def pack_texts(values: Sequence[str] | Packed, name: str) -> Packed:
    """Return texts as (blob, offsets). Arrays that are already packed are only checked."""
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], np.ndarray):
        blob, offsets = values
        return whole(blob, np.uint8, name), whole(offsets, np.uint64, f"{name} (offsets)")
    parts = [value.encode() for value in texts(cast("Sequence[str]", values), name)]
    offsets = np.zeros(len(parts) + 1, np.uint64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


def callback(value: Report) -> Report:
    """Return the progress callback, or None."""
    if value is not None and not callable(value):
        raise InputError(f"report must be callable, not {_short_value(value)}")
    return value


def table(values: Mapping[str, Any], name: str, wanted: Sequence[str]) -> Mapping[str, Any]:
    """Return arrays by name; `InputError` if one of `wanted` is missing."""
    if not isinstance(values, Mapping):
        raise InputError(f"{name} must map names to arrays, not {_short_value(values)}")
    missing = [entry for entry in wanted if entry not in values]
    if missing:
        raise InputError(f"{name} must contain {', '.join(missing)}")
    return values


def _is(values: object, kind: DTypeLike, dims: int | None) -> bool:
    """Return whether an array already has the form that a kernel reads, so that it needs no conversion."""
    return (
        type(values) is np.ndarray
        and values.dtype == kind
        and dims in (values.ndim, None)
        and values.flags.c_contiguous
        and values.flags.aligned
    )


def _array(values: ArrayLike, name: str, dims: int | None) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} must not be a masked array: fill its values first")
    try:
        array = np.asarray(values)
    except MemoryError:
        raise
    except Exception as error:  # converting an object may raise any exception
        raise InputError(
            f"{name} cannot be converted to an array: {type(error).__name__}: {error}"
        ) from error
    if dims not in (array.ndim, None):
        raise InputError(
            f"{name} must have {dims} dimension{'' if dims == 1 else 's'}, not shape {array.shape}"
        )
    return array


def _floats(values: ArrayLike, kind: type[np.floating[Any]], name: str, dims: int) -> NDArray[Any]:
    if _is(values, kind, dims):
        return cast("NDArray[Any]", values)
    array = _array(values, name, dims)
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{name} must be numbers, not {array.dtype}")
    with np.errstate(over="ignore"):  # an overflow becomes infinity, which kernels reject
        return np.require(array.astype(kind, copy=False), requirements=["C", "A"])


def _several(value: Any, name: str, parts: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or len(value) != len(parts):
        raise InputError(f"{name} must be ({', '.join(parts)}), not {_short_value(value)}")
    return tuple(value)


def _short_value(value: object) -> str:
    """Format a value for an error message: shortened, and without raising."""
    if isinstance(value, int | float | bool | type(None)) and not (
        isinstance(value, int) and value.bit_length() > 99
    ):
        return repr(value)
    if isinstance(value, int):
        return f"an integer of {value.bit_length()} bits"
    return f"a {type(value).__name__}"
