"""Determine available memory and cores, and how many sequences fit."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from ketrag_fast import _core
from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.gguf_file import GgufFile

_GROUP: Final = Path("/sys/fs/cgroup")
_STEP: Final = 256  # llama.cpp rounds a sequence's size up to this
_SHARE: Final = 0.85
_BASE: Final = 64 << 20


def free_memory() -> int | None:
    """Return the available memory in bytes, or None if unknown."""
    known = [found for found in (_machine_memory(), _cgroup_memory()) if found is not None]
    return min(known) if known else None


def cores() -> int:
    """Return the number of usable cores: CPU affinity limited by the cgroup quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = (_GROUP / "cpu.max").read_text().split()
        return max(1, min(bound, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return bound


def _machine_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        pass
    if sys.platform == "win32":
        known = _core.windows_memory()
        return known[1] if known is not None else None
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _cgroup_memory() -> int | None:
    try:
        most = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        lines = (_GROUP / "memory.stat").read_text().splitlines()
        files = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
        return max(0, most - used + files)
    except (OSError, ValueError, IndexError):  # no cgroup, or no limit ("max")
        return None


def round_up_tokens(tokens: int) -> int:
    """Round up to the size that llama.cpp allocates."""
    return -(-tokens // _STEP) * _STEP


def context_bytes(file: GgufFile, slots: int, room: int, batch: int) -> int:
    """Return the memory of a context: `slots` sequences and the prefix of `room` tokens, and buffers."""
    cells = file.cell_bytes() * room * (slots + 1)
    attention = file.heads * room * batch * 4 * 2
    return cells + attention + batch * file.width * 4 * 24 + file.vocabulary * 4 * (slots + 1) + _BASE


def fitting_slots(file: GgufFile, slots: int, room: int, batch: int, free: int | None) -> int:
    """Return how many of `slots` fit into `free` bytes. Raises BackendError if none does."""
    if free is None:
        return slots
    for fewer in range(slots, 0, -1):
        if context_bytes(file, fewer, room, batch) <= free * _SHARE:
            return fewer
    needed = context_bytes(file, 1, room, batch)
    raise BackendError(
        f"a context of {room:,} tokens needs {needed / 2**20:,.0f} MB in addition to the model "
        f"({file.size / 2**20:,.0f} MB), but {max(0, free) / 2**20:,.0f} MB are free",
        hint="use a smaller context, fewer reply tokens or a smaller model",
    )


def require_memory(file: GgufFile, free: int | None) -> None:
    """Raise BackendError for a model larger than memory: every token would read it from disk."""
    if free is not None and file.size > free:
        raise BackendError(
            f"{file.path} needs {file.size / 2**20:,.0f} MB, but {free / 2**20:,.0f} MB of memory are free",
            hint="use a smaller model or a smaller quantisation (Q4_K_M)",
        )
