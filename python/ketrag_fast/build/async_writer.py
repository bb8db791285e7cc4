"""Stages are written while the next ones run: disks are waited for, and processors are not.

One thread writes, a stage after the other in their order. Until a stage lies on the disk whoever needs it
gets its arrays from memory; the arrays of large stages go as soon as they are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.arrays import Arrays, write_arrays
from ketrag_fast.storage.durable import discard_folder, move_folder, remove_folder, sync_folder, write_json
from ketrag_fast.storage.generation import check_stage
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.manifest import STAGE_SCHEMA, StageRecord, read_json
from ketrag_fast.systems.spec.stage import Made, Stage

_STAGE_FILE = "stage.json"


class Kept:
    """A stage's folder, and its record once that is written. `how`: reused, resumed or ran."""

    def __init__(self, name: str, how: str, folder: Path, record: StageRecord | Future[StageRecord]) -> None:
        self.name = name
        self.how = how
        self.folder = folder
        self._record = record

    @property
    def written(self) -> bool:
        """Whether it lies on the disk; True also where writing failed."""
        return isinstance(self._record, StageRecord) or self._record.done()

    def when_written(self, call: Callable[[], None]) -> None:
        """Has `call` called once it is written, by the thread that writes; at once where it is."""
        if isinstance(self._record, StageRecord):
            call()
        else:
            self._record.add_done_callback(lambda _: call())

    def record(self) -> StageRecord:
        """Waits until it is written. Raises what went wrong there."""
        if not isinstance(self._record, StageRecord):
            self._record = self._record.result()
        return self._record


class Outputs(Mapping[str, NDArray[Any]]):
    """A stage's arrays: those in memory until they are written, then those of the files."""

    def __init__(self, kept: Kept, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._kept = kept
        self._memory = None if arrays is None else {name: _frozen(made) for name, made in arrays.items()}
        self._files: Arrays | None = None
        kept.when_written(self._let_go)

    def _let_go(self) -> None:
        self._memory = None

    def _now(self) -> Mapping[str, NDArray[Any]]:
        memory = self._memory
        if memory is not None and not self._kept.written:
            return memory
        if self._files is None:
            self._files = Arrays(self._kept.folder, self._kept.record().files)
        return self._files

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def __contains__(self, name: object) -> bool:
        return name in self._now()


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """As it will be read from its file: in C order, little endian, and not to be written."""
    view = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False).view()
    view.flags.writeable = False
    return view


class StageWriter:
    """The thread that writes. Leaving the `with` waits for it: what is made is kept, stopped or not."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ketrag-writes")
        self._last: Future[StageRecord] | None = None

    def write(self, work: Callable[[], StageRecord]) -> Future[StageRecord]:
        """Begins to write. At most two stages are in memory for it: this one, and the one before."""
        if self._last is not None:
            self._last.result()
        self._last = self._pool.submit(work)
        return self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True)


def write_stage(stage: Stage, fingerprint: str, folder: Path, outputs: Made, took: float) -> StageRecord:
    """The stage's folder, whole and synced before it gets its name. `took` is what making it took."""
    begin = time.monotonic()
    aside = folder.with_name(f"{folder.name}.tmp")
    with writing(folder.parent.parent):
        remove_folder(aside)
        aside.mkdir(mode=0o700)
        try:
            files = write_arrays(aside, outputs)
            seconds = took + time.monotonic() - begin
            record = StageRecord(stage.name, stage.version, fingerprint, seconds, files)
            write_json(aside / _STAGE_FILE, {"schema": STAGE_SCHEMA, **record.to_json()})
            sync_folder(aside)
            move_folder(aside, folder)
        except BaseException:
            discard_folder(aside)
            raise
    return record


def finished_stage(folder: Path, stage: Stage, fingerprint: str) -> StageRecord | None:
    """The record of a stage that an earlier build finished, if all of it is still right."""
    if not folder.is_dir():
        return None
    try:
        record = StageRecord.from_json(read_json(folder / _STAGE_FILE))
    except (IndexDamaged, KeyError, TypeError, ValueError, AttributeError):
        return None
    same = (record.name, record.version, record.fingerprint) == (stage.name, stage.version, fingerprint)
    return record if same and sound(folder, record) else None


def sound(folder: Path, record: StageRecord, *, full: bool = True) -> bool:
    """Whether a stage's files are as they were written."""
    try:
        check_stage(folder, record, full=full)
    except IndexDamaged:
        return False
    return True
