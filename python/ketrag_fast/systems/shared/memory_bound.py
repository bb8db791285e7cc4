"""Memory limit of a build, from the setting `memory`, and its measured peak."""

from __future__ import annotations

import os
import sys
from typing import Final

from ketrag_fast import _core
from ketrag_fast.base.config import LEAST_MEMORY, Settings
from ketrag_fast.records import dataclass

_DEFAULT: Final = 1024
"""Memory in MB to assume if the system does not report it."""
_UNIT: Final = (6, 4096)
"""Memory of a unit while it is read: a multiple of its text, plus bytes."""
_ENTRY: Final = 8
"""Bytes of an entry of a transpose."""
_MOST_UNITS: Final = 1 << 15
"""Maximum number of units in a run; longer runs are not faster."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Number of units read at once, and of entries of a transpose written at once."""

    units: int
    entries: int


def memory_of(settings: Settings) -> int:
    """Return the memory of a build in MB: that of the setting, or a quarter of the machine's."""
    return settings.memory or max(LEAST_MEMORY, _of_machine() // 4)


def bounds_of(settings: Settings, text: int) -> Bounds:
    """Return the bounds of a build whose units have `text` bytes on average.

    A quarter of the memory is for reading units, a quarter for a transpose, and the rest for the
    interpreter and the vocabularies.
    """
    quarter = memory_of(settings) * 1_000_000 // 4
    unit = _UNIT[0] * text + _UNIT[1]
    return Bounds(max(1, min(quarter // unit, _MOST_UNITS)), quarter // _ENTRY)


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or None if the system does not report it."""
    if sys.platform == "win32":
        return _core.windows_peak_memory()
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _of_machine() -> int:
    if sys.platform == "win32":
        known = _core.windows_memory()
        return known[0] // 1_000_000 if known is not None else _DEFAULT * 4
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_000_000
    except (ValueError, OSError):
        return _DEFAULT * 4
