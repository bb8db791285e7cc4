"""How many sequences of how many tokens fit into this machine's memory."""

from __future__ import annotations

from typing import Final

from ketrag_fast.backends.llms.gguf_file import GgufFile
from ketrag_fast.errors import BackendError

_STEP: Final = 256  # llama.cpp rounds a sequence's size up to this
_SHARE: Final = 0.85
_BASE: Final = 64 << 20


def rounded(tokens: int) -> int:
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
