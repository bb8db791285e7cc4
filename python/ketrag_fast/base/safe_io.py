"""Read small files completely, but reject pipes, devices and oversized files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.open_beneath import open_regular
from ketrag_fast.errors import ConfigError

MOST: Final = 1 << 26
"""Maximum size of a manifest or a settings file in bytes; real files have a few thousand."""


def read_regular(path: Path, most: int = MOST, root: Path | None = None) -> bytes:
    """Return the bytes of a regular file; with `root`, of one inside that folder after all links.

    Raises OSError for anything else and for more than `most` bytes. Reading a pipe could wait, and reading a
    device might never end.
    """
    with open_regular(path, root) as file:
        # Reading `most` bytes would allocate all of them first; the file size limits the allocation.
        data = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
        while len(data) <= most and (more := file.read(1 << 16)):
            data += more
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return data


_MOST: Final = 4_000_000


def read_toml(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the content of a TOML file, and its table. Raises FileNotFoundError, or ConfigError."""
    try:
        data = read_regular(path, _MOST)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise ConfigError(f"{path} is not a regular file", hint="name a settings file (TOML)") from None
        if error.errno == errno.EFBIG:
            raise ConfigError(f"{path} has more than {_MOST:,} bytes, too many for a settings file") from None
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    import tomllib  # most folders have no settings file

    try:
        return data, tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ConfigError(f"{path} is not readable TOML: it is nested too deeply") from None
    except ValueError as error:  # invalid TOML, invalid UTF-8, or a number with thousands of digits
        raise ConfigError(f"{path} is not TOML: {str(error)[:300]}") from None
