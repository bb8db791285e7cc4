"""Read and replace the settings files of assistants, without following links of a project.

A project may be somebody else's: its `.cursor`, or the file itself, may be a link to a file of the user.
Every folder on the way is opened relative to the one before and no link is followed. The new text is written
into a new file, readable by its owner only, which then replaces the old one.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_MOST: Final = 1 << 26
"""Maximum size of a settings file in bytes; those of assistants can have some MB of history."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_HAS_OPENAT: Final = os.open in os.supports_dir_fd


def read_below(root: Path, path: Path) -> bytes | None:
    """Return the content of a file below a folder; None if it does not exist.

    Raises OSError if the file or a folder on the way is a link, or if it is not a regular file.
    """
    try:
        with _folder(root, path, create=False) as (folder, name):
            return _read(folder, name)
    except FileNotFoundError:
        return None


def replace_below(root: Path, path: Path, before: bytes | None, after: bytes, mode: int) -> None:
    """Replace a file below a folder, or create it with `mode`. Raises OSError as `read_below`.

    The file must still have the content `before`.
    """
    with _folder(root, path, create=True) as (folder, name):
        try:
            found = _read(folder, name)
        except FileNotFoundError:
            found = None
        else:
            mode = _status(folder, name).st_mode & 0o777
        if found != before:
            raise OSError(errno.EBUSY, "it was changed meanwhile; nothing was written", str(path))
        new = f".{name}.{secrets.token_hex(8)}.ketrag-new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
        handle = os.open(_at(folder, new), flags, 0o600, **_in(folder))
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
                file.write(after)
                file.flush()
                if hasattr(os, "fchmod"):
                    os.fchmod(handle, mode)
                os.fsync(handle)
            if isinstance(folder, int):
                os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            else:
                (folder / new).replace(folder / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(_at(folder, new), **_in(folder))
            raise


@contextmanager
def _folder(root: Path, path: Path, *, create: bool) -> Iterator[tuple[int | Path, str]]:
    """Yield the folder of a file, open where the system can open files relative to it, and its name."""
    parts = path.parts
    if path.is_absolute() or not parts or ".." in parts:
        raise OSError(errno.EINVAL, f"the file is outside of {root}", str(path))
    folder: int | Path = os.open(root, _FOLDER & ~_NO_LINK) if _HAS_OPENAT else root
    try:
        for part in parts[:-1]:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(_at(folder, part), 0o755, **_in(folder))  # noqa: PTH102 - relative to a handle
            if not isinstance(folder, int):
                folder = folder / part
                _require_no_link(folder)
                continue
            try:
                inner = os.open(part, _FOLDER, dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise OSError(error.errno, f"{part} is a symbolic link or no folder", str(path)) from None
                raise
            os.close(folder)
            folder = inner
        yield folder, parts[-1]
    finally:
        if isinstance(folder, int):
            os.close(folder)


def _read(folder: int | Path, name: str) -> bytes:
    status = _status(folder, name)
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        raise OSError(errno.ELOOP, f"it is {kind}", name)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINK
    with open(os.open(_at(folder, name), flags, **_in(folder)), "rb") as file:  # noqa: PTH123 - a handle
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise OSError(errno.EFBIG, f"larger than {_MOST:,} bytes", name)
    return data


def _status(folder: int | Path, name: str) -> os.stat_result:
    return os.stat(_at(folder, name), follow_symlinks=False, **_in(folder))  # noqa: PTH116 - as above


def _require_no_link(folder: Path) -> None:
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{folder.name} is a symbolic link", str(folder))


def _at(folder: int | Path, name: str) -> str:
    return name if isinstance(folder, int) else str(folder / name)


def _in(folder: int | Path) -> dict[str, int]:
    return {"dir_fd": folder} if isinstance(folder, int) else {}
