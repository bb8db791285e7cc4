"""Read settings files; devices, pipes and oversized files are rejected before they are read."""

from __future__ import annotations

import errno
import tomllib
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import ConfigError

_MOST: Final = 4_000_000


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file. Raises FileNotFoundError, or ConfigError with the reason."""
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
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ConfigError(f"{path} is not readable TOML: it is nested too deeply") from None
    except ValueError as error:  # invalid TOML, invalid UTF-8, or a number with thousands of digits
        raise ConfigError(f"{path} is not TOML: {str(error)[:300]}") from None
