"""Writing stages to disk while the next ones run.

One thread writes the stages in order. Until a stage is on disk, later stages read its arrays from memory; the
memory is released as soon as they are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.array_spool import is_spooled, spool_pieces
from ketrag_fast.storage.arrays import BLOCKS, Arrays, Written, write_arrays
from ketrag_fast.storage.durable import discard_folder, move_folder, remove_folder, sync_folder, write_json
from ketrag_fast.storage.generation import check_stage
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.manifest import STAGE_SCHEMA, StageRecord, path_of, read_json
from ketrag_fast.systems.spec.stage import Stage

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy.typing import NDArray

_STAGE_FILE = "stage.json"
_LARGE = 1 << 26
"""Bytes of texts that are not unpacked into memory."""


class Kept:
    """A stage's folder, its record once it is written, and where it came from: reused, resumed or ran."""

    def __init__(self, name: str, how: str, folder: Path, record: StageRecord | Future[StageRecord]) -> None:
        self.name = name
        self.how = how
        self.folder = folder
        self._record = record

    @property
    def written(self) -> bool:
        """Whether writing has ended, successfully or not."""
        return isinstance(self._record, StageRecord) or self._record.done()

    def when_written(self, call: Callable[[], None]) -> None:
        """Call `call` from the writing thread when writing ends; immediately if it has."""
        if isinstance(self._record, StageRecord):
            call()
        else:
            self._record.add_done_callback(lambda _: call())

    def record(self) -> StageRecord:
        """Wait until the stage is written, and return its record. Raises the error of a failed write."""
        if not isinstance(self._record, StageRecord):
            self._record = self._record.result()
        return self._record


class Outputs(Mapping[str, "NDArray[Any]"]):
    """A stage's arrays: from memory until they are written, then from the files.

    Arrays that the system can write out stay as they are. Those of the files are unpacked into memory, and
    large texts, of which a stage reads a part at a time, into a file of `scratch` without a name.
    """

    def __init__(self, kept: Kept, arrays: Mapping[str, NDArray[Any]] | None, scratch: Path) -> None:
        self._kept = kept
        self._scratch = scratch
        self._memory = None if arrays is None else {name: _freeze(made) for name, made in arrays.items()}
        self._spooled = {name: made for name, made in (self._memory or {}).items() if is_spooled(made)}
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
        if (spooled := self._spooled.get(name)) is not None:
            return spooled
        now = self._now()
        if isinstance(now, Arrays) and now.packed_bytes(name) >= _LARGE:
            spooled = self._spooled[name] = _freeze(spool_pieces(self._scratch, now.pieces(name)))
            return spooled
        return now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def __contains__(self, name: object) -> bool:
        return name in self._now()


def _freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as its file will hold it: C order, little endian, read-only."""
    view = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False).view()
    view.flags.writeable = False
    return view


class StageWriter:
    """The writing thread. Leaving the `with` block waits for it, so finished stages survive a stop."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # imported here because a delta needs none

        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ketrag-writes")
        self._last: Future[StageRecord] | None = None

    def write(self, work: Callable[[], StageRecord]) -> Future[StageRecord]:
        """Start writing. Waits for the previous stage first, so at most two are held in memory."""
        if self._last is not None:
            self._last.result()
        self._last = self._pool.submit(work)
        return self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)


def write_stage(
    stage: Stage,
    fingerprint: str,
    folder: Path,
    outputs: Written,
    took: float,
    earlier: Arrays | None = None,
) -> StageRecord:
    """Write a stage's folder under a temporary name, sync it, and rename it.

    `took` is how many seconds the stage ran, `earlier` its intact arrays in the published generation.
    """
    begin = time.monotonic()
    aside = folder.with_name(f"{folder.name}.tmp")
    with writing(folder.parent.parent):
        remove_folder(aside)
        aside.mkdir(mode=0o700)
        try:
            files = write_arrays(aside, outputs, earlier)
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
    """Return the record of a stage that an earlier build finished; None unless its files are intact."""
    if not folder.is_dir():
        return None
    try:
        record = StageRecord.from_json(read_json(folder / _STAGE_FILE))
    except (IndexDamaged, KeyError, TypeError, ValueError, AttributeError):
        return None
    same = (record.name, record.version, record.fingerprint) == (stage.name, stage.version, fingerprint)
    return record if same and _lists_all(folder, record) and sound(folder, record) else None


def _lists_all(folder: Path, record: StageRecord) -> bool:
    """Return whether a record names every file of its folder: one that was altered may lack some."""
    listed = {path_of(folder, name, file).name for name, file in record.files.items()}
    return {path.name for path in folder.iterdir()} <= listed | {_STAGE_FILE, BLOCKS}


def sound(folder: Path, record: StageRecord, *, full: bool = True) -> bool:
    """Return whether a stage's files match their checksums (their sizes, without `full`)."""
    try:
        check_stage(folder, record, full=full)
    except IndexDamaged:
        return False
    return True
