"""How much memory and how many cores this process may take, and how many sequences fit into them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.gguf_file import GgufFile

_GROUP: Final = Path("/sys/fs/cgroup")
_STEP: Final = 256  # llama.cpp rounds a sequence's size up to this
_SHARE: Final = 0.85
_BASE: Final = 64 << 20


def free_memory() -> int | None:
    """Bytes that can be taken without driving others out; None where the system does not tell."""
    known = [found for found in (_machine_memory(), _cgroup_memory()) if found is not None]
    return min(known) if known else None


def cores() -> int:
    """Cores that this process may use: those it is bound to, cut by its group's share."""
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
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _cgroup_memory() -> int | None:
    try:
        most = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        lines = (_GROUP / "memory.stat").read_text().splitlines()
        files = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
        return max(0, most - used + files)
    except (OSError, ValueError, IndexError):  # no group, or no limit ("max")
        return None


def round_up_tokens(tokens: int) -> int:
    """Upwards to what llama.cpp takes anyway."""
    return -(-tokens // _STEP) * _STEP


def context_bytes(file: GgufFile, slots: int, room: int, batch: int) -> int:
    """Bytes of a context of `slots` sequences and the prefix, `room` tokens each, and of its arithmetic."""
    cells = file.cell_bytes() * room * (slots + 1)
    attention = file.heads * room * batch * 4 * 2
    return cells + attention + batch * file.width * 4 * 24 + file.vocabulary * 4 * (slots + 1) + _BASE


def fitting_slots(file: GgufFile, slots: int, room: int, batch: int, free: int | None) -> int:
    """As many of `slots` as fit into `free` bytes. Raises BackendError where not even one does."""
    if free is None:
        return slots
    for fewer in range(slots, 0, -1):
        if context_bytes(file, fewer, room, batch) <= free * _SHARE:
            return fewer
    needed = context_bytes(file, 1, room, batch)
    raise BackendError(
        f"a context of {room:,} tokens needs {needed / 2**20:,.0f} MB besides the model "
        f"({file.size / 2**20:,.0f} MB), and {max(0, free) / 2**20:,.0f} MB are free",
        hint="ask for a smaller context or fewer reply tokens, or take a smaller model",
    )


def require_memory(file: GgufFile, free: int | None) -> None:
    """Refuses a model that is larger than the memory: it would be read from the disk for every token."""
    if free is not None and file.size > free:
        raise BackendError(
            f"{file.path} has {file.size / 2**20:,.0f} MB and {free / 2**20:,.0f} MB of memory are free",
            hint="take a smaller model, or one in fewer bits (Q4_K_M)",
        )
