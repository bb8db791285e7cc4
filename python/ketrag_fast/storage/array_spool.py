"""Arrays larger than memory: rows are appended to unnamed temporary files, which are read as memory maps.

The operating system may write their pages to disk and evict them. The files vanish when the process ends.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from ketrag_fast.errors import StorageFull
from ketrag_fast.storage.durable import discard_folder
from ketrag_fast.storage.io_errors import writing

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    Array = NDArray[Any]


class ArraySpool:
    """Named arrays that are appended to temporary files in a folder.

    Examples:
        >>> with ArraySpool(folder) as spool:
        ...     spool.append("ids", np.array([1, 2], np.uint32))
        ...     spool.append("ids", np.array([3], np.uint32))
        ...     arrays = spool.finish()
        >>> arrays["ids"].tolist()
        [1, 2, 3]
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, tuple[IO[bytes], DTypeLike, tuple[int, ...]]] = {}
        self._rows: dict[str, int] = {}

    def append(self, name: str, array: Array) -> None:
        """Append rows; all rows of an array have one type and one shape."""

        import numpy as np

        with writing(self._folder):
            if name not in self._files:
                import tempfile

                file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by `__exit__`
                self._files[name] = file, array.dtype, array.shape[1:]
                self._rows[name] = 0
            self._files[name][0].write(np.ascontiguousarray(array).data)
            self._rows[name] += len(array)

    def finish(self) -> dict[str, Array]:
        """Return the arrays, read-only. They stay readable after the `with` block."""
        arrays = {}
        with writing(self._folder):
            for name, (file, kind, shape) in self._files.items():
                file.flush()
                arrays[name] = _mapped(file, kind, (self._rows[name], *shape))
        return arrays

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file, *_rest in self._files.values():
            file.close()


def _mapped(file: IO[bytes], dtype: DTypeLike, shape: tuple[int, ...]) -> Array:
    import numpy as np

    if 0 in shape:
        array: Array = np.empty(shape, dtype)
    else:
        # A private view of the file: it outlives the file's name and its descriptor.
        array = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype).reshape(shape)
    array.flags.writeable = False
    return array


def spool_pieces(folder: Path, pieces: Iterable[Array]) -> Array:
    """Concatenate pieces of an array in an unnamed file in `folder`, and return the array."""
    with ArraySpool(folder) as spool:
        for piece in pieces:
            spool.append("", piece)
        return spool.finish()[""]


def map_values(path: Path, dtype: DTypeLike) -> Array:
    """Return the values of a file without a header as an array, and remove the file's name."""

    import numpy as np

    with writing(path):
        with path.open("rb") as file:
            array = _mapped(file, dtype, (path.stat().st_size // np.dtype(dtype).itemsize,))
        with suppress(PermissionError):  # on Windows the next build deletes it
            path.unlink()
    return array


def is_spooled(array: Array) -> bool:
    """Return whether an array is backed by a temporary file of an `ArraySpool`."""

    import numpy as np

    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap)


def require_space(folder: Path, size: int) -> None:
    """Raise StorageFull if a disk has fewer than `size` bytes left, before anything is written."""
    from shutil import disk_usage  # imported here because an edit needs no space

    free = disk_usage(folder).free
    if free < size:
        raise StorageFull(
            f"this build needs at least {size / 1e6:,.0f} MB of disk for temporary files in {folder}; "
            f"{free / 1e6:,.0f} MB are free",
            hint="free some space and run the same command again: it continues from there",
        )


@contextmanager
def scratch_folder(parent: Path | None) -> Iterator[Path]:
    """Yield a new folder in `parent` (None: the system's temporary folder); it is deleted at the end."""
    import tempfile

    with writing(parent or Path(tempfile.gettempdir())):
        folder = Path(tempfile.mkdtemp(prefix="scratch-", dir=parent))
    try:
        yield folder
    finally:
        discard_folder(folder)
