"""Stages are written while the next ones run: disks are waited for, and processors are not.

One thread writes, a stage after the other in their order. Until a stage lies on the disk whoever needs it
gets its arrays from memory; the arrays of large stages go as soon as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from ketrag_fast.storage.arrays import Arrays
from ketrag_fast.storage.manifest import StageRecord


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

    def _now(self) -> Mapping[str, NDArray[Any]]:
        if self._memory is not None and not self._kept.written:
            return self._memory
        if self._files is None:
            self._files = Arrays(self._kept.folder, self._kept.record().files)
        self._memory = None
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


class Writer:
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
