"""Vectors as an index stores them: four bits, eight bits or f32 per value of a unit, one bit of a sentence.

A format is a type of rows: NumPy's structured types keep the codes of a row and its scale together until a
stage returns them as separate arrays. `StoredVectors` reads these arrays, whatever their format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.records import dataclass

F32 = NDArray[np.float32]
Rows = NDArray[Any]
"""Rows in the type of a `Packing`."""
FORMATS: Final = ("4bit", "int8", "f32")
"""The formats of units, the coarsest first."""
SIGNS: Final = "signs"
PLACEHOLDER: Final = 1e-30
"""Size of the values of a placeholder, which stands for a vector that is not computed yet.

Its product with any query is 0 in all digits that count, so it changes no ranking. Values that alternate in
sign keep this true of signs, in which sizes are lost. No model returns such a vector, because vectors have
length 1, and that of an empty text is zero.
"""
_SMALL: Final = 1e-20
_ALTERNATING: Final = 0x55
_CODES: Final = {"4bit": "nibbles", "int8": "codes", "f32": "vectors"}
"""The name of the field that holds a row's codes, by format."""
_DECODED: Final = 1 << 16
"""Number of rows decoded at a time, because intermediate values need more memory than the codes."""


@dataclass(frozen=True, slots=True)
class Packing:
    """A format for vectors of one dimension.

    Examples:
        >>> Packing("4bit", 384).row_bytes, Packing("signs", 384).row_bytes
        (196, 48)
    """

    format: str
    dimension: int

    @property
    def row_type(self) -> np.dtype[Any]:
        """NumPy's structured type of a row."""
        if self.format == SIGNS:
            return np.dtype((np.uint8, (-(-self.dimension // 8),)))
        if self.format == "4bit":
            return np.dtype([("nibbles", np.uint8, (-(-self.dimension // 8) * 4,)), ("scale", "<f4")])
        if self.format == "int8":
            return np.dtype([("codes", np.int8, (self.dimension,)), ("scale", "<f4")])
        return np.dtype([("vectors", "<f4", (self.dimension,))])

    @property
    def row_bytes(self) -> int:
        """Size of a row in bytes."""
        return self.row_type.itemsize

    def pack(self, vectors: F32, threads: int = 0) -> Rows:
        """Return vectors as rows of this format. Raises InputError if a value is not finite."""
        given = np.ascontiguousarray(vectors, np.float32)
        if self.format == SIGNS:
            return _core.pack_signs(given)
        rows = np.empty(len(given), self.row_type)
        if self.format == "4bit":
            rows["nibbles"], rows["scale"] = _core.pack_nibbles(given, threads=threads)
        elif self.format == "int8":
            rows["codes"], rows["scale"], _ = _core.quantise_vectors(given, threads=threads)
        else:
            rows["vectors"] = given
        return rows


def columns(rows: Rows, name: str) -> dict[str, NDArray[Any]]:
    """Return packed rows as the arrays of a stage: `NAME_nibbles` or `NAME_codes` and `NAME_scale`, or
    `NAME_vectors`.
    """
    assert rows.dtype.names is not None  # noqa: S101 - units are packed in structured types
    return {f"{name}_{field}": np.ascontiguousarray(rows[field]) for field in rows.dtype.names}


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The vectors of units or chunks in the arrays of a stage: in f32, or codes and scales."""

    format: str
    codes: NDArray[Any]
    scale: F32 | None
    dimension: int

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], name: str = "unit", dimension: int | None = None) -> Self:
        """Return the vectors `name` of a stage; the `dimension` of packed vectors defaults to the stage's."""
        if f"{name}_vectors" in arrays:
            vectors = arrays[f"{name}_vectors"]
            return cls("f32", vectors, None, vectors.shape[1])
        scale = arrays[f"{name}_scale"]
        if f"{name}_nibbles" in arrays:
            size = int(arrays["dimension"][0]) if dimension is None else dimension
            return cls("4bit", arrays[f"{name}_nibbles"], scale, size)
        codes = arrays[f"{name}_codes"]
        return cls("int8", codes, scale, codes.shape[1])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def in_core(self) -> Any:
        """These vectors in the form that the core expects."""
        return self.codes if self.scale is None else (self.codes, self.scale, self.dimension)

    def decode(self, rows: NDArray[Any] | None = None) -> F32:
        """Decode vectors to f32: all of them, or the given rows in the given order."""
        if self.scale is None:
            return self.codes if rows is None else np.ascontiguousarray(self.codes[rows])
        count = len(self) if rows is None else len(rows)
        out = np.empty((count, self.dimension), np.float32)
        for start in range(0, count, _DECODED):
            some = slice(start, start + _DECODED) if rows is None else rows[start : start + _DECODED]
            out[start : start + _DECODED] = self._decoded(self.codes[some], self.scale[some])
        return out

    def _decoded(self, codes: NDArray[Any], scale: F32) -> F32:
        if self.format == "int8":
            return codes.astype(np.float32) * scale[:, None]
        values = np.empty((len(codes), 2 * codes.shape[1]), np.float32)
        values[:, 0::2], values[:, 1::2] = codes & 15, codes >> 4
        values -= 8
        values *= scale[:, None]
        return values[:, : self.dimension]

    def scores(self, query: F32) -> NDArray[np.float64]:
        """Return the product of every vector with a query."""
        return _core.row_scores(self.in_core, np.ascontiguousarray(query, np.float32))

    def packed(self, packing: Packing, rows: NDArray[Any] | None = None) -> Rows:
        """Return the given rows in a format that is not finer than the stored one."""
        if packing.format != self.format:
            return packing.pack(self.decode(rows))
        out = np.empty(len(self) if rows is None else len(rows), packing.row_type)
        chosen: Any = slice(None) if rows is None else rows
        out[_CODES[self.format]] = self.codes[chosen]
        if self.scale is not None:
            out["scale"] = self.scale[chosen]
        return out

    def placeholders(self) -> NDArray[np.bool_]:
        """Return which vectors are placeholders."""
        return _are_small(self.codes[:, 0] if self.scale is None else self.scale)

    def is_finer(self, format: str) -> bool:  # noqa: A002 - the name of the setting
        """Return whether these vectors can be converted to a format without embedding the texts again."""
        return FORMATS.index(self.format) >= FORMATS.index(format)


def placeholder(dimension: int) -> F32:
    """Return the placeholder of a vector.

    Examples:
        >>> (placeholder(4) / PLACEHOLDER).round().tolist()
        [1.0, -1.0, 1.0, -1.0]
    """
    return np.where(np.arange(dimension) % 2, -PLACEHOLDER, PLACEHOLDER).astype(np.float32)


def are_placeholders(rows: Rows) -> NDArray[np.bool_]:
    """Return which packed rows are placeholders.

    Examples:
        >>> packing = Packing("signs", 12)
        >>> are_placeholders(packing.pack(np.stack([placeholder(12), np.ones(12, np.float32)]))).tolist()
        [True, False]
    """
    if rows.dtype.names is None:  # signs; the last byte may have fewer than eight
        last = [_ALTERNATING & (1 << bits) - 1 for bits in range(1, 9)]
        found: NDArray[np.bool_] = (rows[:, :-1] == _ALTERNATING).all(axis=1) & np.isin(rows[:, -1], last)
        return found
    return _are_small(rows["scale"] if "scale" in rows.dtype.names else rows["vectors"][:, 0])


def _are_small(values: F32) -> NDArray[np.bool_]:
    sizes = np.abs(values)
    return (sizes > 0) & (sizes < _SMALL)


def unpack_signs(bits: NDArray[np.uint8], dimension: int) -> F32:
    """Return packed signs as vectors of length 1.

    Examples:
        >>> unpack_signs(np.array([[0b0101]], np.uint8), 4).tolist()
        [[0.5, -0.5, 0.5, -0.5]]
    """
    step = np.float32(dimension**-0.5)
    out = np.empty((len(bits), dimension), np.float32)
    for start in range(0, len(bits), _DECODED):
        signs = np.unpackbits(bits[start : start + _DECODED], axis=1, bitorder="little")[:, :dimension]
        np.multiply(signs, 2 * step, out=out[start : start + _DECODED])
    out -= step
    return out
