"""A generation as immutable arrays of an earlier one, the base, and their changes, the delta.

The delta is the stage `delta`: how each array of the base changes (pieces of it, and new values), and how ids
in them are numbered now. A reader puts the current arrays together, chunk by chunk, when it reads them; they
are those of a build from scratch. The folders of the other stages hold the files of the base.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast._core import MappedFile
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.arrays import Array, Arrays
from ketrag_fast.storage.file_records import REPAIR, FileRecord
from ketrag_fast.storage.manifest import Manifest, StageRecord

DELTA: Final = "delta"
"""The stage that holds the changes."""
_PIECE: Final = 4
_STEP: Final = 2
_ROWS: Final = "units.document_hashes"
"""An array with a row for each document, which differs from that of any other document."""


@dataclass(frozen=True)
class Delta:
    """What a generation with a delta is made of.

    Attributes:
        stages: the records of all its stages, those of the base with the base's shapes.
        base: the arrays of the base.
        changed: the number of documents of the base that are removed or replaced, and of those that came.
    """

    stages: Mapping[str, StageRecord]
    base: Mapping[str, Arrays]
    changed: int


class PatchedArrays(Arrays):
    """The current arrays of a stage."""

    def __getitem__(self, name: str) -> Array:
        """Return an array, put together in memory."""
        found = self._views.get(name)
        if found is None:
            values: Array = _core.unpack_array(self._files[name])
            found = values.reshape(self._records[name].shape)
            found.flags.writeable = False
            self._views[name] = found
        return found


def patches_of(
    published: Mapping[str, Arrays],
    gone: NDArray[np.uint32],
    before: NDArray[np.uint32],
    new: Mapping[str, NDArray[Any]],
    language: str,
) -> tuple[Any, ...] | None:
    """Return how the arrays of the base change, or None if all must be computed.

    Args:
        published: the arrays of the open generation by stage: of the base, or with the changes of a delta.
            These are part of the result, though only the new documents are read.
        gone: numbers of documents that go.
        before: for each new document the number of the published document before which it comes.
        new: the arrays of the stage "units" of the new documents alone.
        language: the setting.
    """
    return _core.delta_patches(
        {f"{stage}.{name}": file for stage, arrays in published.items() for name, file in arrays.mapped()},
        gone,
        before,
        {name: np.ascontiguousarray(array).reshape(-1).astype(np.uint64) for name, array in new.items()},
        language=language,
    )


def delta_arrays(found: tuple[Any, ...], now: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of the stage `delta`.

    Args:
        found: the result of `_core.delta_patches`.
        now: the fingerprints of stages of the current documents.
    """
    arrays, numbers, pieces, values, steps = found
    index = {"arrays": arrays, "numbers": numbers, "fingerprints": dict(now)}
    data = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return {"index": np.frombuffer(data, np.uint8), "pieces": pieces, "values": values, "steps": steps}


def open_delta(
    folder: Path, manifest: Manifest, stages: Mapping[str, Arrays]
) -> tuple[dict[str, Arrays], Manifest, Delta]:
    """Return the current arrays of a generation with a delta, their manifest, and the delta.

    Raises:
        IndexDamaged: the changes are invalid.
    """
    try:
        return _open_delta(folder, manifest, stages)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise IndexDamaged(
            f"the changes in {folder / DELTA} are invalid: {error!r:.300}", hint=REPAIR
        ) from error


def _open_delta(
    folder: Path, manifest: Manifest, stages: Mapping[str, Arrays]
) -> tuple[dict[str, Arrays], Manifest, Delta]:
    own = stages[DELTA]
    index = json.loads(own["index"].tobytes())
    pieces, steps = own["pieces"].reshape(-1, _PIECE), own["steps"].reshape(-1, _STEP)
    values = own["values"]
    numbers: dict[str, NDArray[np.uint64]] = {}
    at = 0
    for what, count in index["numbers"]:
        numbers[what] = steps[at : at + count]
        at += count
    files: dict[str, dict[str, MappedFile]] = {name: {} for name in stages if name != DELTA}
    records: dict[str, dict[str, FileRecord]] = {name: {} for name in files}
    piece = value = changed = 0
    for full, what, count, length, size in index["arrays"]:
        stage, name = full.split(".")
        earlier = stages[stage].file(name)
        part = pieces[piece : piece + count]
        file = earlier.patched(
            part, values[value : value + length], size, numbers[what] if what else None, full
        )
        _check_pieces(part, size, full)
        if full == _ROWS:
            changed = _changed(part, earlier.shape(), size)
        piece, value = piece + count, value + length
        rows, columns = file.shape()
        shape = (rows,) if columns is None else (rows, columns)
        files[stage][name] = file
        records[stage][name] = replace(manifest.stages[stage].files[name], shape=shape)
    current: dict[str, Arrays] = {}
    described: dict[str, StageRecord] = {}
    for name, patched in files.items():
        record = manifest.stages[name]
        if patched.keys() != record.files.keys():
            raise ValueError(f"arrays of {name} are missing")
        fingerprint = str(index["fingerprints"][name])
        if not fingerprint.isascii():
            raise ValueError(f"the fingerprint of {name} is not one")
        described[name] = replace(record, files=records[name], fingerprint=fingerprint)
        current[name] = PatchedArrays(folder / name, records[name], patched)
    delta = Delta(
        manifest.stages,
        {name: arrays for name, arrays in stages.items() if name != DELTA},
        changed,
    )
    return current, replace(manifest, stages=described), delta


def _check_pieces(pieces: NDArray[np.uint64], size: int, name: str) -> None:
    """Raise ValueError if a value is used twice: a small file must not become a large array.

    The core has checked that all pieces are inside the base's array and the new values.
    """
    ends = pieces[:, 1] + np.diff(pieces[:, 0], append=np.uint64(size))
    for is_new in (False, True):
        own = (pieces[:, 2] != 0) == is_new
        if (pieces[own, 1][1:] < ends[own][:-1]).any():
            raise ValueError(f"pieces of {name} overlap")


def _changed(pieces: NDArray[np.uint64], shape: tuple[int, int | None], size: int) -> int:
    """Return how many rows of an array are left out and how many come, given its pieces."""
    rows, columns = shape
    lengths = np.diff(pieces[:, 0], append=np.uint64(size))
    kept = int(lengths[pieces[:, 2] == 0].sum())
    width = columns or 1
    return rows - kept // width + (size - kept) // width
