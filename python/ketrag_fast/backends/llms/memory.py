"""How much memory and how many cores this process may take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_GROUP: Final = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Bytes that can be taken without driving others out; None where the system does not tell."""
    known = [found for found in (_of_machine(), _of_group()) if found is not None]
    return min(known) if known else None


def cores() -> int:
    """Cores that this process may use: those it is bound to, cut by its group's share."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = (_GROUP / "cpu.max").read_text().split()
        return max(1, min(bound, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return bound


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _of_group() -> int | None:
    try:
        most = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        lines = (_GROUP / "memory.stat").read_text().splitlines()
        files = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
        return max(0, most - used + files)
    except (OSError, ValueError, IndexError):  # no group, or no limit ("max")
        return None
