"""Reusing parts of the published generation when only documents changed.

A stage's fingerprint covers the documents, so a change of one document makes every stage run again. Here the
fingerprints are computed a second time as if the documents were the old ones. If one equals that of the
published stage, the stage was computed in the same way, and its arrays are passed to the new run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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

UNITS, HASHES = "units", "document_hashes"
LEAST = 0.5
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
        self._row: list[NDArray[Any] | None] = []

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
        base, arrays = self._base, self.arrays_of(stage)
        if base is None or arrays is None:
            return None
        needs = self._needs(stage)
        if not all(self._is_sound(name) for name in needs.values()):
            return None
        row = self._rows()
        if row is None:
            return None
        return Earlier(arrays, {n: base.stages[name] for n, name in needs.items()}, row)

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

    def _needs(self, stage: Stage) -> dict[str, str]:
        """Return the names of the stages that a stage needs, by slot."""
        needed = stage.needed(self._settings)
        return {need: self._names[need] for need in needed if need not in (DOCUMENTS, stage.slot)}

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

    def _rows(self) -> NDArray[Any] | None:
        if not self._row:
            self._row.append(self._matched())
        return self._row[0]

    def _matched(self) -> NDArray[Any] | None:
        """Return the published row of each document, found by the hash of all that is stored of it, or -1."""
        import numpy as np

        if self._base is None or not self._is_sound(self._names[UNITS]):
            return None
        units = self._base.stages[self._names[UNITS]]
        place = {content: at for at, content in enumerate(rows_of(units[HASHES]))}
        now = rows_of(self._documents.hashes())
        row = np.fromiter((place.get(content, -1) for content in now), np.int64, len(now))
        return row if len(row) and np.count_nonzero(row >= 0) >= LEAST * len(row) else None


def rows_of(hashes: NDArray[Any]) -> list[bytes]:
    """Return the rows of an array of bytes."""
    data, width = hashes.tobytes(), hashes.shape[1]
    return [data[start : start + width] for start in range(0, len(data), width)]
