"""What a stage is: a name, what it needs, the settings it depends on, and one function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.config import Settings
from ketrag_fast.errors import Cancelled, ConfigError
from ketrag_fast.progress import Meter
from ketrag_fast.storage.arrays import RawFile
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Document

if TYPE_CHECKING:
    from ketrag_fast.backends.embedders.source import VectorSource
    from ketrag_fast.extraction.run import Reading

Array = NDArray[Any]
Outputs = Mapping[str, Array]
Made = Mapping[str, Array | RawFile]
"""What a stage hands over: arrays, and files that another library reads."""

DOCUMENTS: Final = "documents"
"""The pseudo-stage that a stage needs if it looks at the documents themselves."""


class Documents:
    """The documents of this build, in their order; read from the tables when asked for."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __len__(self) -> int:
        return self._tables.count()

    def __iter__(self) -> Iterator[Document]:
        return self._tables.documents()

    def packed(self, column: str) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """One of `id`, `title`, `text`, `metadata` (JSON) as (blob, offsets): UTF-8, n + 1 offsets."""
        parts = list(self._tables.column(column))
        offsets = np.zeros(len(parts) + 1, np.uint64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return np.frombuffer(b"".join(parts), np.uint8), offsets


class StageInputs(Mapping[str, Outputs]):
    """`inputs["units"]["unit_tokens"]`: the arrays of the stages that were declared as needed, mapped."""

    def __init__(self, stages: Mapping[str, Outputs], documents: Documents | None) -> None:
        self._stages = stages
        self._documents = documents

    def __getitem__(self, stage: str) -> Outputs:
        return self._stages[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    @property
    def documents(self) -> Documents:
        """Only for a stage that needs "documents"."""
        if self._documents is None:
            raise KeyError(DOCUMENTS)
        return self._documents


@dataclass(frozen=True, slots=True)
class StageContext:
    """`report(done, total)` is handed to the kernels as `report=`; it returns False to stop them.

    `model` makes vectors, where the settings name one; None stands for the built-in space. `reading` has
    the chunks read, where something reads them. `scratch` is a folder on the index's disk for files that
    are handed over, or needed for a while.
    """

    report: Meter
    threads: int = 0
    model: VectorSource | None = None
    reading: Reading | None = None
    scratch: Path | None = None

    def check(self) -> None:
        """For Python loops: raises Cancelled once a stop was asked for."""
        if self.report.stopped:
            raise Cancelled("the build was stopped")


@dataclass(frozen=True, slots=True)
class Stage:
    """A pure function of what it needs and of its settings. Raise `version` when its result changes.

    `settings` names the fields of Settings that change the result; `unit` is for progress.

    `look` is for a stage whose result depends on what is kept elsewhere (replies): it is called in every
    build, may do what takes long, and what it returns counts as a part of the fingerprint. Stages that
    need this one then depend on its arrays, not on how they came about. `read` stages are run only in an
    index whose chunks something reads.
    """

    name: str
    version: int
    needs: tuple[str, ...]
    settings: tuple[str, ...]
    run: Callable[[StageInputs, Settings, StageContext], Made] = field(repr=False)
    unit: str = ""
    look: Callable[[StageInputs, Settings, StageContext], str] | None = field(default=None, repr=False)
    read: bool = False


def fingerprint_of(
    stage: Stage, settings: Settings, found: Mapping[str, str], model: str | None = None
) -> str:
    """A hash of all that the stage's result depends on; `found` has that of each of its needs.

    `model` is the fingerprint of the embedding model: it stands in the place of the embedder's name.
    """
    values = settings.only(sorted(stage.settings))
    if model is not None and "embedder" in values:
        values["embedder"] = model
    return text_digest(
        [
            stage.name,
            str(stage.version),
            *(f"{name}={value!r}" for name, value in values.items()),
            *(f"{need}:{found[need]}" for need in sorted(stage.needs)),
        ]
    )


def check_order(stages: Sequence[Stage]) -> None:
    """ConfigError unless every stage comes after those that it needs, once."""
    found = {DOCUMENTS}
    for stage in stages:
        if not stage.name.isidentifier() or stage.name in found:
            raise ConfigError(f"stage {stage.name!r} has a bad name or comes twice")
        missing = [need for need in stage.needs if need not in found]
        if missing:
            raise ConfigError(f"stage {stage.name} needs {missing[0]}, which does not come before it")
        found.add(stage.name)
