"""Records of what the user has confirmed, in the user's state folder. `storage.confirmations` writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.hashes import blake2b
from ketrag_fast.base.safe_io import read_regular

ENDPOINTS: Final = "endpoints"
INDEXES: Final = "indexes"
SETTINGS: Final = "settings"
_MOST: Final = 1 << 22
"""Maximum size of a record in bytes; that of an index with thousands of sources has some 100 kB."""


def state_folder(kind: str = ENDPOINTS) -> Path:
    """Return the folder of one kind of records, below `XDG_STATE_HOME` or the system's equivalent."""
    base = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~/.local/state"))  # noqa: PTH111 - Path.home() raises without a home
    return base / "ketrag-fast" / kind


def record_file(kind: str, about: Mapping[str, str]) -> Path:
    """Return the file of a record."""
    key = json.dumps(about, sort_keys=True).encode()
    return state_folder(kind) / f"{blake2b(key, digest_size=16).hexdigest()}.json"


def read_record(kind: str, about: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the stored record of a confirmation; None if it does not exist."""
    try:
        found = json.loads(read_regular(record_file(kind, about), _MOST))
    except (OSError, ValueError, RecursionError):
        return None
    is_same = isinstance(found, dict) and {name: found.get(name) for name in about} == about
    return found if is_same else None
