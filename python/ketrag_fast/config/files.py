"""Small files of settings, read whole: a device, a pipe or an endless file is refused before it is read."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import ConfigError

_MOST: Final = 4_000_000


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file. FileNotFoundError where there is none, else ConfigError with the reason."""
    try:
        # Opening a pipe would wait for who writes to it.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path} is no regular file", hint="name a file of settings (TOML)")
            data = file.read(_MOST + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _MOST:
        raise ConfigError(f"{path} has more than {_MOST:,} bytes, too many for a file of settings")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ConfigError(f"{path} is not TOML that can be read: it is nested too deeply") from None
    except ValueError as error:  # of TOML, of UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path} is not TOML: {str(error)[:300]}") from None
