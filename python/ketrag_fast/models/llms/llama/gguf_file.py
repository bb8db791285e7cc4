"""The facts about a GGUF file that llama.cpp reads from its header, and the memory that a context needs.

Loading only the vocabulary also finds truncated and damaged files, because llama.cpp compares the table of
tensors with the size of the file.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ketrag_fast import _core
from ketrag_fast.base import processor
from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.weights import complaint, library
from ketrag_fast.records import dataclass, field

_STEP: Final = 256  # llama.cpp rounds a sequence's size up to this
_SHARE: Final = 0.85
_BASE: Final = 64 << 20
_LONGEST_FACT: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A file: the metadata of its header as text, its chat template (Jinja), the size of its vocabulary."""

    path: Path
    size: int
    facts: Mapping[str, str] = field(hash=False)
    template: str | None
    vocabulary: int

    @property
    def architecture(self) -> str:
        """The architecture: llama, qwen2, gemma3, ..."""
        return self.facts.get("general.architecture", "")

    @property
    def context(self) -> int | None:
        """The context size of the training in tokens, or None."""
        return self._number("context_length")

    def cell_bytes(self) -> int:
        """Return the context memory per token: keys and values of all layers in 16 bits.

        An upper bound: layers with a window, a compressed cache or no cache count in full.
        """
        heads, width = self._number("attention.head_count") or 32, self._number("embedding_length") or 4096
        groups = (self._number("block_count") or 32) * (self._number("attention.head_count_kv") or heads)
        usual = max(1, width // heads)
        key = self._number("attention.key_length") or usual
        value = self._number("attention.value_length") or usual
        return 2 * groups * (key + value)

    def context_bytes(self, slots: int, room: int, batch: int) -> int:
        """Return the memory of a context: `slots` sequences and the prefix of `room` tokens, and buffers."""
        heads, width = self._number("attention.head_count") or 32, self._number("embedding_length") or 4096
        cells = self.cell_bytes() * room * (slots + 1)
        return cells + batch * (heads * room * 8 + width * 96) + self.vocabulary * 4 * (slots + 1) + _BASE

    def fitting_slots(self, slots: int, room: int, batch: int, free: int | None) -> int:
        """Return how many of `slots` fit into `free` bytes. Raises BackendError if none does."""
        if free is None:
            return slots
        for fewer in range(slots, 0, -1):
            if self.context_bytes(fewer, room, batch) <= free * _SHARE:
                return fewer
        needed = self.context_bytes(1, room, batch)
        raise BackendError(
            f"a context of {room:,} tokens needs {needed / 2**20:,.0f} MB in addition to the model "
            f"({self.size / 2**20:,.0f} MB), but {max(0, free) / 2**20:,.0f} MB are free",
            hint="use a smaller context, fewer reply tokens or a smaller model",
        )

    def _number(self, name: str) -> int | None:
        """Return a positive number, the largest of those of the layers, or None."""
        try:
            found = json.loads(self.facts.get(f"{self.architecture}.{name}", ""))
        except ValueError:
            return None
        largest = max(found, default=0) if isinstance(found, list) else found
        return largest if isinstance(largest, int) and largest > 0 else None


def round_up_tokens(tokens: int) -> int:
    """Round up to the size that llama.cpp allocates."""
    return -(-tokens // _STEP) * _STEP


def read_gguf(path: Path) -> GgufFile:
    """Read the header. Raises BackendMissing, and BackendError: missing, not GGUF, damaged or split."""
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise BackendError(f"{path} is a folder", hint="give the .gguf file in it")
        with path.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
    except FileNotFoundError as error:
        raise BackendError(f"no such file: {path}", hint="give the path of a GGUF model") from error
    except OSError as error:
        raise BackendError(f"cannot read {path}: {error.strerror}") from error
    if not is_gguf:
        raise BackendError(
            f"{path} is not a GGUF file",
            hint="llama.cpp only reads GGUF; convert a model folder with its convert_hf_to_gguf.py",
        )
    api = library()
    parameters = api.llama_model_default_params()
    parameters.vocab_only = True
    model = api.llama_model_load_from_file(str(path).encode("utf-8"), parameters)
    if not model:
        raise BackendError(
            f"{path} is truncated or damaged: {complaint()}", hint="copy or download the model again"
        )
    try:
        facts = {}
        text = ctypes.create_string_buffer(_LONGEST_FACT)
        for number in range(api.llama_model_meta_count(model)):
            api.llama_model_meta_key_by_index(model, number, text, len(text))
            name = text.value.decode("utf-8", "replace")
            api.llama_model_meta_val_str_by_index(model, number, text, len(text))
            facts[name] = text.value.decode("utf-8", "replace")
        template = api.llama_model_chat_template(model, None)
        vocabulary = int(api.llama_vocab_n_tokens(api.llama_model_get_vocab(model)))
    finally:
        api.llama_model_free(model)
    if facts.get("split.count", "1") not in ("0", "1"):
        raise BackendError(
            f"{path} is one of several parts of a model",
            hint="merge them: llama-gguf-split --merge FIRST.gguf WHOLE.gguf",
        )
    shown = template.decode("utf-8", "replace") if template else ""
    return GgufFile(path, size, facts, shown if shown.strip() else None, vocabulary)


_GROUP: Final = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Return the available memory in bytes, or None if unknown."""
    known = [found for found in (_machine_memory(), _cgroup_memory()) if found is not None]
    return min(known, default=None)


def cores() -> int:
    """Return the number of usable cores: CPU affinity limited by the cgroup quota."""
    bound = processor.cores()
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
