"""The arrays of a stage, declared once: type, shape, and what the values may be.

A shape is made of numbers and of named sizes: `array("u64", "units+1")` has one value more than there
are units, whatever their number, and two arrays that name the same size must agree about it. What reads
arrays (the check on writing, statistics, reports) reads these declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.errors import StageError

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
    """One array. `below` names a size that every value stays under, from 0 up; `rising` values never fall;
    `over` names an array of the same stage whose rows these divide: from 0 to its length; an `optional`
    array may be missing.
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
    """An array of `u8 i8 u32 u64 i64 f32 f64 bool` with that shape: sizes by name, numbers, or `ANY`."""
    if kind not in _TYPES:
        raise StageError(f"{kind!r} is no type of arrays", hint="one of " + ", ".join(_TYPES))
    for size in shape:
        if isinstance(size, str) and size != ANY and not _SIZE.fullmatch(size):
            raise StageError(f"{size!r} is no size", hint='a name, a name with "+1", a number, or "*"')
    return ArraySpec(kind, shape, below, rising, optional, over)


def strings(name: str, rows: str, *, optional: bool = False) -> dict[str, ArraySpec]:
    """`NAME_blob` (UTF-8) and `NAME_offsets` (one more than there are rows)."""
    return {
        f"{name}_blob": array("u8", ANY, optional=optional),
        f"{name}_offsets": array("u64", f"{rows}+1", rising=True, optional=optional, over=f"{name}_blob"),
    }


def graph(name: str, rows: str, columns: str, *, optional: bool = False) -> dict[str, ArraySpec]:
    """`NAME_indptr` and `NAME_indices`: compressed sparse rows of ids below the number of columns."""
    return {
        f"{name}_indptr": array("u64", f"{rows}+1", rising=True, optional=optional, over=f"{name}_indices"),
        f"{name}_indices": array("u32", ANY, below=columns, optional=optional),
    }


def codes(name: str, rows: str, *, optional: bool = False) -> dict[str, ArraySpec]:
    """The eight-bit copy of some vectors: codes, their scale, and the error that bounds a score."""
    return {
        f"{name}_codes": array("i8", rows, ANY, optional=optional),
        f"{name}_scale": array("f32", rows, optional=optional),
        f"{name}_residual": array("f32", rows, optional=optional),
    }


def measure_sizes(specs: Arrays, shapes: Mapping[str, tuple[int, ...]], sizes: Sizes, stage: str) -> None:
    """Adds the sizes that these arrays have to `sizes`. StageError where two arrays disagree about one."""
    for name, spec in specs.items():
        shape = shapes.get(name)
        if shape is None:
            continue
        if len(shape) != len(spec.shape):
            raise StageError(
                f"{stage}.{name} has {len(shape)} dimensions where {len(spec.shape)} are declared"
            )
        for wanted, found in zip(spec.shape, shape, strict=True):
            _bind(f"{stage}.{name}", wanted, found, sizes)


def check(specs: Arrays, arrays: Mapping[str, Any], sizes: Sizes, stage: str) -> None:
    """StageError, with the array's name, unless the arrays are as they were declared.

    `sizes` has those of the stages before, and gains those of this one.
    """
    import numpy as np

    unknown = sorted(map(str, arrays.keys() - specs.keys()))
    if unknown:
        raise StageError(
            f"{stage}.{unknown[0]} is made but not declared", hint="add it to the stage's arrays"
        )
    for name, spec in specs.items():
        made = arrays.get(name)
        if made is None:
            if not spec.optional:
                raise StageError(f"{stage}.{name} is declared but was not made")
            continue
        if not isinstance(made, np.ndarray):
            raise StageError(f"{stage}.{name} is no array but of type {type(made).__name__}")
        if made.dtype.newbyteorder("<").str != _TYPES[spec.kind]:
            raise StageError(f"{stage}.{name} holds {made.dtype}, and {spec.kind} is declared")
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
            raise StageError(f"{where} has {found:,} rows or columns where {wanted} is {more:,} at the least")
        expected = sizes.setdefault(match[1], found - more) + more
    if found != expected:
        raise StageError(f"{where} has {found:,} rows or columns where {wanted} is {expected:,}")


def _check_values(where: str, spec: ArraySpec, made: NDArray[Any], sizes: Sizes) -> None:
    import numpy as np

    if not made.size:
        return
    if made.dtype.kind == "f":
        flat = made.reshape(-1)
        # Part by part: the answers about a large array would need fresh memory of their own.
        parts = range(0, len(flat), _PART)
        if not all(bool(np.isfinite(flat[at : at + _PART]).all()) for at in parts):
            raise StageError(f"{where} holds a number that is not finite")
    if spec.below is not None:
        limit = _limit(where, spec.below, sizes)
        least, most = made.min(), made.max()
        if most >= limit or least < 0:
            wrong = most if most >= limit else least
            limits = f"from 0 to below {spec.below} ({limit:,})"
            raise StageError(f"{where} holds {wrong:,}, which is not {limits}")
    if spec.rising and bool((made[1:] < made[:-1]).any()):
        raise StageError(f"{where} falls somewhere, and is declared as rising")


def _check_over(where: str, ends: NDArray[Any], name: str, divided: NDArray[Any] | None) -> None:
    rows = 0 if divided is None else len(divided)
    if len(ends) and (int(ends[0]) != 0 or int(ends[-1]) != rows):
        ends_at = f"{int(ends[0]):,} to {int(ends[-1]):,}"
        raise StageError(f"{where} goes from {ends_at}, and {name} has {rows:,} rows")


def _limit(where: str, name: str, sizes: Sizes) -> int:
    try:
        return sizes[name]
    except KeyError:
        raise StageError(f"{where} is bounded by {name}, a size that no array has") from None


def each(*groups: Arrays) -> Iterator[tuple[str, ArraySpec]]:
    """All arrays of some groups, in order."""
    for group in groups:
        yield from group.items()
