"""Cache the measured kernel choice of each model on this machine, so that later starts are fast.

A small JSON file in the user's cache folder maps (fingerprint, version, processor with its kernels, requested
precision and kernel) to the chosen kernel, the timings, and the cosine of its vectors to f32. Entries are
validated, and the file may be deleted at any time: missing entries are measured again.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.processor import processor_name
from ketrag_fast.kernels.encoder import kernels

FILE: Final = "verified.json"
_LARGEST: Final = 1 << 20
_ENTRIES: Final = 1000


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """A kernel, its precision (f32, bf16, int8) and the lowest cosine of its vectors to f32.

    `timings` are (kernel, precision, microseconds per token and layer), fastest first; empty if there was no
    choice. `note` names a faster candidate that was rejected.
    """

    kernel: str
    precision: str
    closeness: float
    timings: tuple[tuple[str, str, float], ...] = ()
    note: str | None = None

    @classmethod
    def of(cls, data: Any, known: Iterable[str]) -> PrecisionChoice | None:
        """Return the choice from JSON, or None if it is not valid for the `known` kernels."""
        try:
            timings = tuple((str(k), str(p), float(t)) for k, p, t in data["timings"])
            choice = cls(data["kernel"], data["precision"], data["closeness"], timings, data["note"])
        except (TypeError, KeyError, ValueError):
            return None
        is_number = isinstance(choice.closeness, (int, float)) and not isinstance(choice.closeness, bool)
        is_known = choice.kernel in known and choice.precision in ("f32", "bf16", "int8")
        if not is_known or not is_number or not -1 <= choice.closeness <= 1:
            return None
        has_valid_note = choice.note is None or isinstance(choice.note, str)
        return choice if has_valid_note and all(0 < t < math.inf for _, _, t in timings) else None


class Verified:
    """The cached choices. `folder` defaults to the user's cache folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or cache_folder()) / FILE

    def get(self, fingerprint: str, wanted: str) -> PrecisionChoice | None:
        """Return the choice for a model and `wanted`, the requested precision and kernel (or auto)."""
        return PrecisionChoice.of(self._read().get(_key(fingerprint, wanted)), kernels())

    def put(self, fingerprint: str, wanted: str, choice: PrecisionChoice) -> None:
        """Store a choice; if the folder is not writable, do nothing."""
        entries = dict(list(self._read().items())[-_ENTRIES:]) | {_key(fingerprint, wanted): asdict(choice)}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False) as file:
                json.dump(entries, file)
            Path(file.name).replace(self._file)
        except OSError:
            return

    def _read(self) -> dict[str, Any]:
        try:
            if self._file.stat().st_size > _LARGEST:
                return {}
            data = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}


def cache_folder() -> Path:
    """Return the cache folder of this package."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ketrag-fast"


def _key(fingerprint: str, wanted: str) -> str:
    """Return the key of an entry. It lists kernels too: a virtual machine may hide instructions."""
    return f"{fingerprint} {_core.__version__} {processor_name()} [{' '.join(kernels())}] {wanted}"
