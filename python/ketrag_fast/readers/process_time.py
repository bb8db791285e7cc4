"""The processor time of another process: on a busy machine it grows more slowly than the clock."""

from __future__ import annotations

import os
from pathlib import Path

_FIRST = 11
"""Index of the user time among the fields behind the name in `/proc/PID/stat`; three further times follow."""


def processor_seconds(process: int) -> float | None:
    """Return the processor time of a process and of its children that ended; None if it cannot be read."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        ticks = sum(map(int, fields[_FIRST : _FIRST + 4]))
    except (OSError, ValueError):
        return None
    return float(ticks / os.sysconf("SC_CLK_TCK")) if hasattr(os, "sysconf") else None
