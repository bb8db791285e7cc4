"""What was found about models on this machine before, so that a start does not find it out again.

One small JSON file in the user's cache folder: (model's fingerprint, processor, version) to the lowest
cosine between bf16 and f32. It is believed only where it is a number from -1 to 1, and may vanish at any
time: what is missing is measured anew, what cannot be written is not.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core

FILE: Final = "verified.json"
_LARGEST: Final = 1 << 20
_ENTRIES: Final = 1000


class Verified:
    """See the module. `folder` None is the user's cache folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or cache_folder()) / FILE

    def get(self, fingerprint: str) -> float | None:
        """The lowest cosine, if it is known."""
        value = self._read().get(_key(fingerprint))
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not -1 <= value <= 1:
            return None
        return float(value)

    def put(self, fingerprint: str, lowest: float) -> None:
        """Remembers it; a folder that cannot be written is no error."""
        entries = dict(list(self._read().items())[-_ENTRIES:]) | {_key(fingerprint): lowest}
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


def _key(fingerprint: str) -> str:
    return f"{fingerprint} {_core.__version__} {_processor()}"


def _processor() -> str:
    """The processor's name as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
