"""Indexes in object stores: bundles at `s3://`, `gs://` and `az://` addresses, through fsspec.

An index is opened from a copy in the user's cache folder, which is made once for each version of the object.
Every byte of a copy is compared with the hashes in the bundle before the index is used."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from ketrag_fast.errors import BackendError, ConfigError, IndexMissing, KetragError
from ketrag_fast.index.bundles import read_bundle, write_bundle
from ketrag_fast.models.embedders.native import cache_folder
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout

SCHEMES: Final = ("s3", "gs", "az")
_DRIVERS: Final = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
_PIECE: Final = 4 << 20
_KEPT_SECONDS: Final = 86_400.0
"""A copy of an older version that was unused for a day is removed; queries may still read younger ones."""
T = TypeVar("T")


def is_object(place: object) -> bool:
    """Return whether a place is an address in an object store.

    Examples:
        >>> is_object("s3://bucket/notes.bundle"), is_object("notes.bundle")
        (True, False)
    """
    return isinstance(place, str) and place.partition("://")[0] in SCHEMES and "://" in place


def store_bundle(path: Path, address: str, *, replace: bool, with_model: bool) -> int:
    """Write the index at `path` to an object, and return the object's size in bytes.

    Raises:
        ConfigError: The object exists and `replace` is False.
        BackendError: The store cannot be used, or does not permit it.
        BackendMissing: fsspec, or the driver of the store, is not installed.
        KetragError: The errors of `Index.bundle`.
    """
    store = _Store(address)
    if not replace and store.version() is not None:
        raise ConfigError(f"{address} exists", hint="--replace overwrites it")
    with _scratch(_cache_of(address)) as folder:
        size = write_bundle(path, folder / "bundle", replace=False, with_model=with_model)
        store.upload(folder / "bundle")
    return size


def restore_bundle(address: str, path: Path) -> None:
    """Create the index at `path` from an object. Raises the errors of `cached_index`."""
    with _scratch(_cache_of(address)) as folder:
        _Store(address).download(folder / "bundle")
        read_bundle(folder / "bundle", path)


def cached_index(address: str) -> Path:
    """Return the folder of the local copy of an index, which is made if the object is new or has changed.

    Raises:
        IndexMissing: There is no such object.
        IndexDamaged: The object is not a bundle, or differs from its hashes.
        BackendError: The store cannot be used, or does not permit it.
        BackendMissing: fsspec, or the driver of the store, is not installed.
        StorageFull: The cache folder has no space.
    """
    store = _Store(address)
    version = store.version()
    if version is None:
        raise IndexMissing(f"no such object: {address}", hint=f"`ketrag bundle {address} -i DIR` writes it")
    folder = _cache_of(address)
    path = folder / version
    if not Layout(path).exists():
        with _scratch(folder) as scratch:
            store.download(scratch / "bundle")
            read_bundle(scratch / "bundle", scratch / "index")
            with writing(path), suppress(FileExistsError):  # another process may have made it
                if not path.exists():
                    (scratch / "index").rename(path)
    with suppress(OSError):
        os.utime(path)
    _remove_old(folder, path)
    return path


class _Store:
    """One object. Errors of the store become errors of the package that name it."""

    def __init__(self, address: str) -> None:
        self.address = address
        scheme = address.partition("://")[0]
        core = import_quietly("fsspec.core", "stores")
        import_quietly(_DRIVERS[scheme])
        fs, name = self._call(lambda: core.url_to_fs(address))
        self._fs: Any = fs
        self._name: str = name

    def version(self) -> str | None:
        """Return a name for the object's version; None if it does not exist."""
        self._fs.invalidate_cache()
        try:
            about = self._call(lambda: self._fs.info(self._name))
        except IndexMissing:
            return None
        if about.get("type") == "directory":
            return None
        tag = next((about[name] for name in ("ETag", "etag", "md5Hash") if about.get(name)), None)
        facts = (str(tag or about.get("LastModified") or about.get("last_modified")), about.get("size"))
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]

    def upload(self, file: Path) -> None:
        """Write a file to the object."""
        self._call(lambda: self._fs.put_file(str(file), self._name))

    def download(self, file: Path) -> None:
        """Write the object to a file."""
        source = self._call(lambda: self._fs.open(self._name, "rb", block_size=_PIECE))
        with writing(file), file.open("wb") as target:
            try:
                while piece := self._call(lambda: source.read(_PIECE)):
                    target.write(piece)
            finally:
                with suppress(Exception):
                    source.close()

    def _call(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except KetragError:
            raise
        except FileNotFoundError:
            raise IndexMissing(f"no such object: {self.address}") from None
        except PermissionError as error:
            raise BackendError(
                f"{self.address} is not permitted: {error}"[:400],
                hint="check the credentials and the rights of the bucket",
            ) from None
        except Exception as error:  # noqa: BLE001 - drivers raise the exceptions of their libraries
            raise BackendError(
                f"{self.address} cannot be used: {type(error).__name__}: {error}"[:400],
                hint="check the address, the credentials and the network",
            ) from None


def _cache_of(address: str) -> Path:
    return cache_folder() / "objects" / hashlib.sha256(address.encode()).hexdigest()[:32]


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A new folder below `folder`, which is removed at the end."""
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remove_old(folder: Path, current: Path) -> None:
    """Remove copies of other versions, and what was left by killed processes, after a day."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry != current and time.time() - entry.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(entry, ignore_errors=True)
