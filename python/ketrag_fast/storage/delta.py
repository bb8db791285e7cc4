"""A generation stored as the immutable arrays of an earlier one (the base) and their changes (the delta).

The delta is the stage `delta`: how each array of the base changes (pieces of it, and new values), and how ids
in them are renumbered. A reader assembles the current arrays piece by piece as it reads them; they
equal those of a build from scratch. The folders of the other stages hold the files of the base.

So that a small change stays cheap after many others, a large delta becomes the stage `delta_before`, which
then stays unchanged for a while, and `delta` holds only the changes after it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast import _core
from ketrag_fast._core import MappedFile
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.arrays import Arrays, Buffer
from ketrag_fast.storage.io_errors import REPAIR
from ketrag_fast.storage.manifest import FileRecord, Manifest, StageRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.storage.arrays import Array

DELTA: Final = "delta"
"""The stage that holds the changes."""
BEFORE: Final = "delta_before"
"""The stage that holds earlier changes, if there are many."""
DELTAS: Final = (BEFORE, DELTA)
_PIECE: Final = 4
_STEP: Final = 2
_ROWS: Final = "units.document_hashes"
"""An array with one row per document; no two documents have the same row."""


@dataclass(frozen=True)
class Delta:
    """The components of a generation with a delta.

    Attributes:
        stages: the records of all stages; records of base stages have the shapes of the base.
        base: the arrays of the base.
        below: the arrays that `delta` changes: the base, or the base with `delta_before` applied.
        changed: the numbers of documents removed or replaced, and of documents added, relative to the base.
        recent: the same numbers for the changes in `delta` alone.
    """

    stages: Mapping[str, StageRecord]
    base: Mapping[str, Arrays]
    below: Level
    changed: int
    recent: int


@dataclass(frozen=True)
class Level:
    """The arrays of all stages that depend on documents, with the records that describe them.

    `changed` is the number of documents that differ from those of the base.
    """

    arrays: Mapping[str, Arrays]
    stages: Mapping[str, StageRecord]
    changed: int = 0


@dataclass(frozen=True)
class NewDocuments:
    """The documents that come with a delta.

    Attributes:
        units: their arrays of the stage "units".
        hashes: the first 16 bytes of the content hash of each.
        vectors: with a model, the arrays "vectors.NAME" and "sentence_vectors.NAME".
    """

    units: _core.CutUnits
    hashes: bytes
    vectors: Mapping[str, NDArray[Any]]


class PatchedArrays(Arrays):
    """The current arrays of a stage."""

    def __getitem__(self, name: str) -> Array:
        """Return an array, assembled in memory."""
        found = self._views.get(name)
        if found is None:
            values: Array = _core.unpack_array(self._files[name])
            found = values.reshape(self._records[name].shape)
            found.flags.writeable = False
            self._views[name] = found
        return found


def patches_of(
    published: Mapping[str, Arrays],
    gone: Sequence[int],
    before: Sequence[int],
    new: NewDocuments,
    language: str,
    behind: Sequence[Mapping[str, Arrays]] = (),
) -> tuple[Any, ...] | None:
    """Return how arrays change, or None if they must all be computed again.

    Args:
        published: the current arrays by stage.
        gone: numbers of the removed documents.
        before: for each new document, the number of the published document that follows it.
        new: the new documents.
        language: the setting `language`.
        behind: levels of arrays whose changes are merged into the result, the current level first.
    """
    vectors = {name: _as_numbers(array) for name, array in new.vectors.items()}
    return _core.delta_patches(
        _files(published),
        aligned(array("I", gone)),
        aligned(array("I", before)),
        new.units,
        {**vectors, "document_hashes": aligned(array("Q", list(new.hashes)))},
        language=language,
        behind=[_files(arrays) for arrays in behind],
    )


def aligned(values: array[int]) -> array[int] | memoryview:
    """Return an array in the form that the core takes: an empty one has no aligned address."""
    return values if values else memoryview(array(values.typecode, [0]))[:0]


_BITS: Final = {"i1": "u1", "f4": "<u4"}
"""Types whose values are stored as unsigned integers with the same bits."""


def _as_numbers(values: NDArray[Any]) -> NDArray[np.uint64]:
    import numpy as np

    flat = np.ascontiguousarray(values).reshape(-1)
    bits = _BITS.get(flat.dtype.str[1:])
    return (flat if bits is None else flat.view(bits)).astype(np.uint64)


def _files(stages: Mapping[str, Arrays]) -> dict[str, MappedFile]:
    return {f"{stage}.{name}": file for stage, arrays in stages.items() for name, file in arrays.mapped()}


def delta_arrays(found: tuple[Any, ...], now: Mapping[str, str]) -> dict[str, Buffer]:
    """Return the arrays of the stage `delta`.

    Args:
        found: the result of `_core.delta_patches`.
        now: the stage fingerprints for the current documents.
    """
    arrays, numbers, *parts = found
    index = {"arrays": arrays, "numbers": numbers, "fingerprints": dict(now)}
    data = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    wide = {name: Buffer(part, "<u8", (len(part) // 8,)) for name, part in zip(_PARTS, parts, strict=True)}
    return {"index": Buffer(data, "|u1", (len(data),)), **wide}


_PARTS: Final = ("pieces", "values", "steps")


def open_delta(
    folder: Path, manifest: Manifest, stages: Mapping[str, Arrays], before: Delta | None = None
) -> tuple[Mapping[str, Arrays], Manifest, Delta]:
    """Return the current arrays of a generation with a delta, their manifest, and the delta.

    Arrays with `delta_before` applied are shared with `before` if that has the same base and changes.

    Raises:
        IndexDamaged: the changes are invalid.
    """
    own = {name: arrays for name, arrays in stages.items() if name not in DELTAS}
    base = Level(own, {name: manifest.stages[name] for name in own})
    below = base
    if BEFORE in stages:
        below = _shared(before, base, manifest) or _changed_level(folder, BEFORE, stages[BEFORE], base)
    top = _changed_level(folder, DELTA, stages[DELTA], below)
    delta = Delta(manifest.stages, own, below, top.changed, top.changed - below.changed)
    return top.arrays, replace(manifest, stages=top.stages), delta


def _shared(before: Delta | None, base: Level, manifest: Manifest) -> Level | None:
    """Return the level below another delta, if that has the same base and `delta_before`."""
    if before is None or BEFORE not in before.stages:
        return None
    names = (*base.stages, BEFORE)
    same = all(name in before.stages and before.stages[name] == manifest.stages[name] for name in names)
    is_open = all(
        file is before.base[name].file(array)
        for name, arrays in base.arrays.items()
        for array, file in arrays.mapped()
    )
    return before.below if same and is_open else None


def _changed_level(folder: Path, name: str, own: Arrays, below: Level) -> Level:
    """Apply the changes in a stage to arrays. Raises IndexDamaged if the changes are invalid."""
    try:
        return _with_changes(folder, own, below)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise IndexDamaged(
            f"the changes in {folder / name} are invalid: {error!r:.300}", hint=REPAIR
        ) from error


def _with_changes(folder: Path, own: Arrays, below: Level) -> Level:
    stored = own.columns
    index = json.loads(bytes(stored["index"][:]))
    pieces, steps, values = stored["pieces"][:], stored["steps"][:], stored["values"][:]
    numbers: dict[str, memoryview] = {}
    at = 0
    for what, count in index["numbers"]:
        numbers[what] = steps[_STEP * at : _STEP * (at + count)]
        at += count
    files: dict[str, dict[str, MappedFile]] = {name: {} for name in below.arrays}
    records: dict[str, dict[str, FileRecord]] = {name: {} for name in files}
    piece = value = changed = 0
    for full, what, count, length, size in index["arrays"]:
        stage, name = full.split(".")
        earlier = below.arrays[stage].file(name)
        part = pieces[_PIECE * piece : _PIECE * (piece + count)]
        file = earlier.patched(
            part, values[value : value + length], size, numbers[what] if what else None, full
        )
        if full == _ROWS:
            changed = _changed(part, earlier.shape(), size)
        piece, value = piece + count, value + length
        rows, columns = file.shape()
        shape = (rows,) if columns is None else (rows, columns)
        files[stage][name] = file
        records[stage][name] = replace(below.stages[stage].files[name], shape=shape)
    current: dict[str, Arrays] = {}
    described: dict[str, StageRecord] = {}
    for name, patched in files.items():
        record = below.stages[name]
        if patched.keys() != record.files.keys():
            raise ValueError(f"arrays of {name} are missing")
        fingerprint = str(index["fingerprints"][name])
        if not fingerprint.isascii():
            raise ValueError(f"the fingerprint of {name} is not one")
        described[name] = replace(record, files=records[name], fingerprint=fingerprint)
        current[name] = PatchedArrays(folder / name, records[name], patched)
    return Level(current, described, below.changed + changed)


def _changed(pieces: memoryview, shape: tuple[int, int | None], size: int) -> int:
    """Return how many rows of an array are removed and how many are added, given its pieces."""
    rows, columns = shape
    starts = [*pieces[::_PIECE].tolist(), size]
    kept = sum(
        stop - start
        for start, stop, is_new in zip(starts, starts[1:], pieces[2::_PIECE].tolist(), strict=False)
        if not is_new
    )
    width = columns or 1
    return rows - kept // width + (size - kept) // width
