"""Reusing parts of published generations when only documents changed, or when indexes are merged.

A stage's fingerprint covers the documents, so a change of one document makes every stage run again. Here the
fingerprints are computed a second time as if the documents were the old ones. If one equals that of the
published stage, the stage was computed in the same way, and its arrays are passed to the new run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.building.async_writer import sound
from ketrag_fast.storage.arrays import Arrays
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.delta import DELTAS
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.manifest import content_digest
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import DOCUMENTS, Earlier, Stage, fingerprint_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNITS: Final = "units"
HASHES: Final = "document_hashes"
_LINKS: Final = "links"
LEAST: Final = 0.5
"""The share of documents that must be unchanged; below it, reuse saves nothing."""


class Before:
    """The published generation's stages that were computed with the current settings and versions."""

    def __init__(self, base: Generation | None, documents: Documents, settings: Settings) -> None:
        self._base = base
        self._documents = documents
        self._settings = settings
        self._found: dict[str, str] = {}
        if base is not None:
            self._found[DOCUMENTS] = str(base.manifest.documents.get("fingerprint"))
        self._names: dict[str, str] = {}
        self._sound: dict[str, bool] = {}

    def follow(self, stage: Stage, model: str | None, looked: str | None, more: Sequence[str]) -> None:
        """Record whether the published stage was computed as this one would be. Call it for all, in order.

        `more` is hashed in addition to the fingerprint: what the stage looked at, and its variant.
        """
        record = self._base.manifest.stages.get(stage.name) if self._base is not None else None
        if record is None or any(need not in self._found for need in stage.needed(self._settings)):
            return
        own = fingerprint_of(stage, self._settings, self._found, model)
        if more:
            own = text_digest([own, *more])
        if own == record.fingerprint:
            self._found[stage.slot] = own if looked is None else content_digest([record])
            self._names[stage.slot] = stage.name

    def of(self, stage: Stage) -> Earlier | None:
        """Return the published arrays of a stage and of its needs; None if few documents are unchanged."""
        arrays = self.arrays_of(stage)
        if self._base is None or arrays is None:
            return None
        needed = stage.needed(self._settings)
        needs = {need: self._names[need] for need in needed if need not in (DOCUMENTS, stage.slot)}
        if not all(self._is_sound(name) for name in needs.values()) or self._rows is None:
            return None
        return Earlier(arrays, {need: self._base.stages[name] for need, name in needs.items()}, self._rows)

    def arrays_of(self, stage: Stage) -> Arrays | None:
        """Return the verified arrays of a stage that was computed in the same way."""
        if self._base is None or self._names.get(stage.slot) != stage.name or UNITS not in self._names:
            return None
        return self._base.stages[stage.name] if self._is_sound(stage.name) else None

    def units(self) -> Arrays | None:
        """Return the verified arrays of the stage "units"."""
        if self._base is None or UNITS not in self._names or not self._is_sound(self._names[UNITS]):
            return None
        return self._base.stages[self._names[UNITS]]

    def damaged(self) -> set[str]:
        """Return the names of stages whose checksums do not match."""
        return {name for name, is_sound in self._sound.items() if not is_sound}

    def _is_sound(self, name: str) -> bool:
        base = self._base
        if base is not None and name not in self._sound:
            full = self._settings.verify != "sizes"
            stored = base.records()
            parts = (name, *(part for part in DELTAS if part in stored))
            self._sound[name] = all(sound(base.folder / part, stored[part], full=full) for part in parts)
        return self._sound.get(name, False)

    @cached_property
    def _rows(self) -> NDArray[Any] | None:
        return _published_rows(self.units(), self._documents)


class MergedBefore:
    """The published stages of several indexes that are merged; the interface of `Before`.

    If a stage was computed in the same way in all of them, the units of all parts, one part after another,
    take the place of the published ones, and the links of each part are renumbered.
    """

    def __init__(
        self, parts: Sequence[Generation], documents: Documents, settings: Settings, scratch: Path
    ) -> None:
        self._parts = [Before(part, documents, settings) for part in parts]
        self._documents = documents
        self._scratch = scratch

    def follow(self, stage: Stage, model: str | None, looked: str | None, more: Sequence[str]) -> None:
        """Record for each part whether its stage was computed as this one would be."""
        for part in self._parts:
            part.follow(stage, model, looked, more)

    def of(self, stage: Stage) -> Earlier | None:
        """Return the arrays of the stages "units" and "links" of all parts; None for other stages."""
        if stage.name not in (UNITS, _LINKS):
            return None
        found = [part.arrays_of(stage) for part in self._parts]
        if self._units is None or self._rows is None or any(arrays is None for arrays in found):
            return None
        if stage.name == UNITS:
            return Earlier(self._units, {}, self._rows)
        # Each unit is found by its number: their texts, the largest of these arrays, are not needed any more.
        units = {name: array for name, array in self._units.items() if not name.startswith("unit_texts_")}
        self._units = units
        parts = tuple(arrays.unread() for arrays in found if arrays is not None)
        return Earlier({}, {UNITS: units}, self._rows, parts)

    @cached_property
    def _units(self) -> Mapping[str, NDArray[Any]] | None:
        """The units of all parts, one part after another; None if they have locations."""
        found = [units for part in self._parts if (units := part.units()) is not None]
        if len(found) < len(self._parts) or any("location_indptr" in units for units in found):
            return None
        from ketrag_fast.storage.array_spool import ArraySpool, scratch_folder  # few builds join parts
        from ketrag_fast.systems.shared.units import JoinedUnits

        with scratch_folder(self._scratch) as folder, ArraySpool(folder) as spool:
            joined = JoinedUnits(spool)
            for arrays in found:
                units = arrays.unread()  # those of one part are unpacked at a time
                joined.add(units, [])
                spool.append(HASHES, units[HASHES])
                del units
            return joined.finish()

    @cached_property
    def _rows(self) -> NDArray[Any] | None:
        return _published_rows(self._units, self._documents)


def _published_rows(units: Mapping[str, NDArray[Any]] | None, documents: Documents) -> NDArray[Any] | None:
    """Return the published row of each document, or -1; None if too few documents are unchanged.

    Documents are compared by the hash of all that is stored of them.
    """
    import numpy as np

    if units is None:
        return None
    place = {content: at for at, content in enumerate(_rows_of(units[HASHES]))}
    now = _rows_of(documents.hashes())
    row = np.fromiter((place.get(content, -1) for content in now), np.int64, len(now))
    return row if len(row) and np.count_nonzero(row >= 0) >= LEAST * len(row) else None


def _rows_of(hashes: NDArray[Any]) -> list[bytes]:
    """Return the rows of an array of bytes."""
    data, width = hashes.tobytes(), hashes.shape[1]
    return [data[start : start + width] for start in range(0, len(data), width)]
