"""The name of the processor, and the cores that this process may use."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

INFO: Final = Path("/proc/cpuinfo")
_ARM: Final = ("CPU implementer", "CPU part", "CPU variant", "CPU revision")
"""Numbers that Linux reports for an ARM core instead of a name."""


def processor_name(info: Path = INFO) -> str:
    """Return the processor name from Linux (for ARM the numbers of the first core), or else from Python.

    The result is never empty. On macOS and Windows it is only the processor family.
    """
    try:
        lines = info.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    first: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        first.setdefault(name.strip(), value.strip())
    if first.get("model name"):
        return first["model name"]
    numbers = [f"{name.removeprefix('CPU ')} {first[name]}" for name in _ARM if first.get(name)]
    if numbers:
        return f"{platform.machine()} ({', '.join(numbers)})"
    return platform.processor() or platform.machine() or "unknown"


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
