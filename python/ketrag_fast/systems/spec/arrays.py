"""Declarations of a stage's arrays: type, shape and permitted values.

A shape consists of numbers and named sizes: `array("u64", "units+1")` has one value more than there are
units, and arrays that name the same size must agree about it. The check before writing, statistics and
reports all read these declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.errors import StageError
from ketrag_fast.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES: Final = {
    "u8": "|u1",
    "i8": "|i1",
    "u32": "<u4",
    "u64": "<u8",
    "i64": "<i8",
    "f32": "<f4",
    "f64": "<f8",
    "bool": "|b1",
}
_SIZE: Final = re.compile(r"([a-z_]+)(?:\+(\d+))?")
ANY: Final = "*"
"""A length that nothing else depends on."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The declaration of one array.

    Attributes:
        below: a named size; every value is from 0 to one less.
        rising: values never decrease.
        optional: the array may be missing.
        over: an array of the same stage whose rows these offsets divide, from 0 to its length.

    Examples:
        >>> spec = array("u32", "units", below="chunks")
        >>> spec.kind, spec.shape, spec.below
        ('u32', ('units',), 'chunks')
    """

    kind: str
    shape: tuple[str | int, ...]
    below: str | None = None
    rising: bool = False
    optional: bool = False
    over: str | None = None


_PART = 1 << 17
Arrays = Mapping[str, ArraySpec]
Sizes = dict[str, int]


def array(
    kind: str,
    *shape: str | int,
    below: str | None = None,
    rising: bool = False,
    optional: bool = False,
    over: str | None = None,
) -> ArraySpec:
    """Declare an array of type `u8 i8 u32 u64 i64 f32 f64 bool`; the shape has names, numbers or `ANY`.

    Examples:
        >>> array("f32", "units", 3).shape
        ('units', 3)
    """
    if kind not in _TYPES:
        raise StageError(f"unknown array type {kind!r}", hint="use one of " + ", ".join(_TYPES))
    for size in shape:
        if isinstance(size, str) and size != ANY and not _SIZE.fullmatch(size):
            raise StageError(f"invalid size {size!r}", hint='use a name, a name with "+1", a number, or "*"')
    return ArraySpec(kind, shape, below, rising, optional, over)


def strings(name: str, rows: str, *, optional: bool = False) -> dict[str, ArraySpec]:
    """Declare packed strings: `NAME_blob` (UTF-8) and `NAME_offsets` (one more than rows).

    Examples:
        >>> {name: spec.shape for name, spec in strings("label", "units").items()}
        {'label_blob': ('*',), 'label_offsets': ('units+1',)}
    """
    return {
        f"{name}_blob": array("u8", ANY, optional=optional),
        f"{name}_offsets": array("u64", f"{rows}+1", rising=True, optional=optional, over=f"{name}_blob"),
    }


def graph(
    name: str, rows: str, columns: str | None = None, *, optional: bool = False
) -> dict[str, ArraySpec]:
    """Declare compressed sparse rows: `NAME_indptr`, and `NAME_indices` below `columns`, if given.

    Examples:
        >>> {name: spec.shape for name, spec in graph("near", "units", "units").items()}
        {'near_indptr': ('units+1',), 'near_indices': ('*',)}
    """
    return {
        f"{name}_indptr": array("u64", f"{rows}+1", rising=True, optional=optional, over=f"{name}_indices"),
        f"{name}_indices": array("u32", ANY, below=columns, optional=optional),
    }


def codes(name: str, rows: str, *, optional: bool = False) -> dict[str, ArraySpec]:
    """Declare the 8-bit copy of vectors: codes, scale, and the residual that bounds the error of a score."""
    return {
        f"{name}_codes": array("i8", rows, ANY, optional=optional),
        f"{name}_scale": array("f32", rows, optional=optional),
        f"{name}_residual": array("f32", rows, optional=optional),
    }


def vectors(name: str, rows: str) -> dict[str, ArraySpec]:
    """Declare vectors in any format: in f32 with their 8-bit copy, or 4 or 8 bits per value and a scale."""
    return {
        f"{name}_vectors": array("f32", rows, "dimension", optional=True),
        f"{name}_nibbles": array("u8", rows, ANY, optional=True),
        **codes(name, rows, optional=True),
    }


def measure_sizes(specs: Arrays, shapes: Mapping[str, tuple[int, ...]], sizes: Sizes, stage: str) -> None:
    """Add the sizes of these arrays to `sizes`. Raises StageError if two arrays disagree about one."""
    for name, spec in specs.items():
        shape = shapes.get(name)
        if shape is None:
            continue
        if len(shape) != len(spec.shape):
            raise StageError(f"{stage}.{name} has {len(shape)} dimensions; {len(spec.shape)} are declared")
        for wanted, found in zip(spec.shape, shape, strict=True):
            _bind(f"{stage}.{name}", wanted, found, sizes)


def check(specs: Arrays, arrays: Mapping[str, Any], sizes: Sizes, stage: str) -> None:
    """Raise StageError, with the array's name, unless the arrays match their declarations.

    `sizes` holds the sizes of earlier stages; those of this stage are added.
    """
    import numpy as np

    unknown = sorted(map(str, arrays.keys() - specs.keys()))
    if unknown:
        raise StageError(f"{stage}.{unknown[0]} is not declared", hint="add it to the stage's arrays")
    for name, spec in specs.items():
        made = arrays.get(name)
        if made is None:
            if not spec.optional:
                raise StageError(f"{stage}.{name} is declared, but the stage did not return it")
            continue
        if not isinstance(made, np.ndarray):
            raise StageError(f"{stage}.{name} is not an array but a {type(made).__name__}")
        if made.dtype.newbyteorder("<").str != _TYPES[spec.kind]:
            raise StageError(f"{stage}.{name} has type {made.dtype}; {spec.kind} is declared")
    measure_sizes(specs, {name: made.shape for name, made in arrays.items()}, sizes, stage)
    for name, spec in specs.items():
        if name in arrays:
            _check_values(f"{stage}.{name}", spec, arrays[name], sizes)
            if spec.over is not None:
                _check_over(f"{stage}.{name}", arrays[name], spec.over, arrays.get(spec.over))


def _bind(where: str, wanted: str | int, found: int, sizes: Sizes) -> None:
    if wanted == ANY:
        return
    if isinstance(wanted, int):
        expected = wanted
    else:
        match = _SIZE.fullmatch(wanted)
        assert match is not None  # noqa: S101 - `array` looked
        more = int(match[2] or 0)
        if found < more:
            raise StageError(f"{where} has {found:,} rows or columns; {wanted} is at least {more:,}")
        expected = sizes.setdefault(match[1], found - more) + more
    if found != expected:
        raise StageError(f"{where} has {found:,} rows or columns; {wanted} is {expected:,}")


def _check_values(where: str, spec: ArraySpec, made: NDArray[Any], sizes: Sizes) -> None:
    import numpy as np

    if not made.size:
        return
    if made.dtype.kind == "f":
        flat = made.reshape(-1)
        # In parts, because a mask of a whole large array needs memory too.
        parts = range(0, len(flat), _PART)
        if not all(bool(np.isfinite(flat[at : at + _PART]).all()) for at in parts):
            raise StageError(f"{where} has a value that is not finite")
    if spec.below is not None:
        limit = _limit(where, spec.below, sizes)
        least, most = made.min(), made.max()
        if most >= limit or least < 0:
            wrong = most if most >= limit else least
            raise StageError(
                f"{where} has the value {wrong:,}; it must be 0 or more and below {spec.below} ({limit:,})"
            )
    if spec.rising and any(
        bool((made[at + 1 : at + 1 + _PART] < made[at : at + _PART][: len(made) - at - 1]).any())
        for at in range(0, len(made) - 1, _PART)
    ):
        raise StageError(f"{where} is declared as rising, but a value decreases")


def _check_over(where: str, ends: NDArray[Any], name: str, divided: NDArray[Any] | None) -> None:
    rows = 0 if divided is None else len(divided)
    if len(ends) and (int(ends[0]) != 0 or int(ends[-1]) != rows):
        span = f"{int(ends[0]):,} to {int(ends[-1]):,}"
        raise StageError(f"{where} goes from {span}; {name} has {rows:,} rows")


def _limit(where: str, name: str, sizes: Sizes) -> int:
    try:
        return sizes[name]
    except KeyError:
        raise StageError(f"{where} is bounded by the size {name}, which no array declares") from None


def each(*groups: Arrays) -> Iterator[tuple[str, ArraySpec]]:
    """Yield all arrays of some groups, in order."""
    for group in groups:
        yield from group.items()
