"""Reusing the published arrays of the indexes that are merged.

Each part is followed as the published generation of an ordinary build is (`build.reuse`). If the stage was
computed in the same way in all of them, the units of all parts, one part after another, take the place of the
published ones, and the links of each part are renumbered instead of read from the texts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.building.reuse import HASHES, LEAST, UNITS, Before, rows_of
from ketrag_fast.storage.array_spool import ArraySpool, scratch_folder
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.shared.units import JoinedUnits
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Earlier, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_LINKS: Final = "links"


class MergedBefore:
    """The published stages of several indexes; the interface of `Before`."""

    def __init__(
        self, parts: Sequence[Generation], documents: Documents, settings: Settings, scratch: Path
    ) -> None:
        self._parts = [Before(part, documents, settings) for part in parts]
        self._documents = documents
        self._scratch = scratch
        self._units: list[Mapping[str, NDArray[Any]] | None] = []
        self._row: list[NDArray[Any] | None] = []

    def follow(self, stage: Stage, model: str | None, looked: str | None, more: Sequence[str]) -> None:
        """Record for each part whether its stage was computed as this one would be."""
        for part in self._parts:
            part.follow(stage, model, looked, more)

    def of(self, stage: Stage) -> Earlier | None:
        """Return the arrays of the stages "units" and "links" of all parts; None for other stages."""
        if stage.name not in (UNITS, _LINKS):
            return None
        found = [part.arrays_of(stage) for part in self._parts]
        units, row = self._joined_units(), self._rows()
        if units is None or row is None or any(arrays is None for arrays in found):
            return None
        if stage.name == UNITS:
            return Earlier(units, {}, row)
        # Each unit is found by its number: their texts, the largest of these arrays, are not needed any more.
        units = {name: array for name, array in units.items() if not name.startswith("unit_texts_")}
        self._units = [units]
        parts = tuple(arrays.unread() for arrays in found if arrays is not None)
        return Earlier({}, {UNITS: units}, row, parts)

    def _joined_units(self) -> Mapping[str, NDArray[Any]] | None:
        """Return the units of all parts, one part after another; None if they have locations."""
        if not self._units:
            self._units.append(self._join())
        return self._units[0]

    def _join(self) -> Mapping[str, NDArray[Any]] | None:
        found = [units for part in self._parts if (units := part.units()) is not None]
        if len(found) < len(self._parts) or any("location_indptr" in units for units in found):
            return None
        with scratch_folder(self._scratch) as folder, ArraySpool(folder) as spool:
            joined = JoinedUnits(spool)
            for arrays in found:
                units = arrays.unread()  # those of one part are unpacked at a time
                joined.add(units, [])
                spool.append(HASHES, units[HASHES])
                del units
            return joined.finish()

    def _rows(self) -> NDArray[Any] | None:
        if not self._row:
            self._row.append(self._matched())
        return self._row[0]

    def _matched(self) -> NDArray[Any] | None:
        """Return the row of each document among those of all parts, or -1."""
        import numpy as np

        units = self._joined_units()
        if units is None:
            return None
        place = {content: at for at, content in enumerate(rows_of(units[HASHES]))}
        now = rows_of(self._documents.hashes())
        row = np.fromiter((place.get(content, -1) for content in now), np.int64, len(now))
        return row if len(row) and np.count_nonzero(row >= 0) >= LEAST * len(row) else None
