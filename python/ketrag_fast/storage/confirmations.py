"""Endpoints that the user has confirmed for an index, stored outside of the index.

An index, with every file in its folder, may come from another person. A confirmation is therefore a file
in the user's state folder, and belongs to one absolute path, one identity and one address. The identity is a
random number in the file `index.id`: it is not bundled, and `unbundle` draws a new one, so that an index that
replaces another one does not inherit its confirmations. A copy is not confirmed because its path differs.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import re
import secrets
from pathlib import Path
from typing import Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import ConfigError
from ketrag_fast.storage.durable import make_folder, replace_file, write_file
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout

_IDENTITY: Final = re.compile(rb"[0-9a-f]{32}\n?")
_MOST: Final = 1 << 16


def state_folder() -> Path:
    """Return the folder of the user's confirmations: below `XDG_STATE_HOME`, or the system's equivalent."""
    base = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~/.local/state"))  # noqa: PTH111 - Path.home() raises without a home
    return base / "ketrag-fast" / "endpoints"


def is_confirmed(layout: Layout, address: str) -> bool:
    """Return whether the user has confirmed an address for the index in this folder."""
    identity = _identity(layout)
    if identity is None:
        return False
    about = _about(layout, identity, address)
    try:
        found = json.loads(read_regular(_file(about), _MOST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {name: found.get(name) for name in about} == about


def confirm(layout: Layout, address: str) -> None:
    """Record that texts and keys may be sent to an address for the index in this folder.

    Raises ReadOnly or StorageFull if the state folder, or an index folder without an identity, cannot be
    written.
    """
    identity = _identity(layout)
    if identity is None:
        identity = draw_identity(layout)
    about = _about(layout, identity, address)
    file = _file(about)
    if not file.is_absolute():
        raise ConfigError(
            "cannot store confirmations: the user has no home folder",
            hint="set XDG_STATE_HOME to an absolute path",
        )
    record = {**about, "confirmed": dt.datetime.now(dt.UTC).isoformat(timespec="seconds")}
    with writing(file.parent):
        if not file.parent.is_dir():
            try:
                make_folder(file.parent, 0o700)
            except FileExistsError:
                if not file.parent.is_dir():
                    raise
        replace_file(file, json.dumps(record, ensure_ascii=False, indent=1).encode() + b"\n")


def forget(layout: Layout, address: str) -> bool:
    """Delete a confirmation; return whether it existed."""
    identity = _identity(layout)
    if identity is None:
        return False
    file = _file(_about(layout, identity, address))
    with writing(file.parent):
        try:
            file.unlink()
        except FileNotFoundError:
            return False
    return True


def draw_identity(layout: Layout) -> str:
    """Give the index in this folder a new identity, which invalidates all confirmations; return it."""
    with writing(layout.root):
        identity = secrets.token_hex(16)
        aside = layout.identity.with_name(f"{layout.identity.name}.{identity}.tmp")
        try:
            write_file(aside, identity.encode("ascii") + b"\n")
            aside.replace(layout.identity)
        finally:
            aside.unlink(missing_ok=True)
    return _identity(layout) or identity  # another process may have created an identity meanwhile


def _identity(layout: Layout) -> str | None:
    try:
        data = read_regular(layout.identity, _MOST)
    except OSError:
        return None
    return data.strip().decode("ascii") if _IDENTITY.fullmatch(data) else None


def _about(layout: Layout, identity: str, address: str) -> dict[str, str]:
    return {"index": os.path.realpath(layout.root), "identity": identity, "endpoint": address}


def _file(about: dict[str, str]) -> Path:
    key = json.dumps(about, sort_keys=True).encode()
    return state_folder() / f"{hashlib.blake2b(key, digest_size=16).hexdigest()}.json"
