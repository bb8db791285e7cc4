"""What was found about models on this machine before, so that a start does not find it out again.

One small JSON file in the user's cache folder: (model's fingerprint, version, processor with its kernels,
what was wanted) to the kernel that was taken, what each took, and how close its vectors are to those of
f32. It is believed only where it makes sense, and may vanish at any time: what is missing is measured anew,
what cannot be written is not.
"""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.kernels.encoder import kernels

FILE: Final = "verified.json"
_LARGEST: Final = 1 << 20
_ENTRIES: Final = 1000


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """A kernel in a precision (f32, bf16, int8), the lowest cosine of its vectors to f32, and why.

    `timings` are (kernel, precision, microseconds of a token in one layer), the fastest first; empty where
    there was nothing to choose. `note` says what was not used although it was faster.
    """

    kernel: str
    precision: str
    closeness: float
    timings: tuple[tuple[str, str, float], ...] = ()
    note: str | None = None

    @classmethod
    def of(cls, data: Any, known: Iterable[str]) -> PrecisionChoice | None:
        """Of JSON, if it makes sense on a machine with the `known` kernels."""
        try:
            timings = tuple((str(k), str(p), float(t)) for k, p, t in data["timings"])
            made = cls(data["kernel"], data["precision"], data["closeness"], timings, data["note"])
        except (TypeError, KeyError, ValueError):
            return None
        number = isinstance(made.closeness, (int, float)) and not isinstance(made.closeness, bool)
        fits = made.kernel in known and made.precision in ("f32", "bf16", "int8")
        if not fits or not number or not -1 <= made.closeness <= 1:
            return None
        noted = made.note is None or isinstance(made.note, str)
        return made if noted and all(0 < t < math.inf for _, _, t in timings) else None


class Verified:
    """See the module. `folder` None is the user's cache folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or cache_folder()) / FILE

    def get(self, fingerprint: str, wanted: str) -> PrecisionChoice | None:
        """What was chosen for this model where `wanted` (a precision and a kernel's name or auto) was."""
        return PrecisionChoice.of(self._read().get(_key(fingerprint, wanted)), kernels())

    def put(self, fingerprint: str, wanted: str, choice: PrecisionChoice) -> None:
        """Remembers it; a folder that cannot be written is no error."""
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
    """Where this package keeps what it can do without."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ketrag-fast"


def _key(fingerprint: str, wanted: str) -> str:
    """Names alone do not tell processors apart: a virtual machine may hide instructions."""
    return f"{fingerprint} {_core.__version__} {_processor()} [{' '.join(kernels())}] {wanted}"


def _processor() -> str:
    """The processor's name as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
