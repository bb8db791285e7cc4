"""What the user has confirmed: endpoints and sources of an index, settings files. Stored outside of both.

An index, with every file in its folder, may come from another person. A confirmation is therefore a file
in the user's state folder. That of an endpoint belongs to one absolute path, one identity and one address.
The identity is a random number in the file `index.id`: it is not bundled, and `unbundle` draws a new one, so
that an index that replaces another one does not inherit its confirmations. A copy is not confirmed because
its path differs.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.base.user_records import ENDPOINTS, SETTINGS, read_record, record_file
from ketrag_fast.errors import ConfigError
from ketrag_fast.storage.durable import make_folder, replace_file, write_file
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout

if TYPE_CHECKING:
    from ketrag_fast.base.config.settings_file import SettingsFile

_IDENTITY: Final = re.compile(rb"[0-9a-f]{32}\n?")


def is_confirmed(layout: Layout, address: str) -> bool:
    """Return whether the user has confirmed an address for the index in this folder."""
    identity = identity_of(layout)
    return identity is not None and read_record(ENDPOINTS, _about(layout, identity, address)) is not None


def confirm(layout: Layout, address: str) -> None:
    """Record that texts and keys may be sent to an address for the index in this folder.

    Raises ReadOnly or StorageFull if the state folder, or an index folder without an identity, cannot be
    written.
    """
    identity = identity_of(layout)
    if identity is None:
        identity = draw_identity(layout)
    write_record(ENDPOINTS, _about(layout, identity, address))


def forget(layout: Layout, address: str) -> bool:
    """Delete a confirmation; return whether it existed."""
    identity = identity_of(layout)
    return identity is not None and delete_record(ENDPOINTS, _about(layout, identity, address))


def confirm_settings(file: SettingsFile) -> None:
    """Record that a settings file may be used as it is now. Raises as `write_record`."""
    write_record(SETTINGS, file.about)


def forget_settings(file: SettingsFile) -> bool:
    """Delete the confirmation of the present content of a settings file; return whether it existed."""
    return delete_record(SETTINGS, file.about)


def write_record(kind: str, about: Mapping[str, str], **more: Any) -> None:
    """Store the record of a confirmation, with the present time.

    Raises ReadOnly or StorageFull if the folder cannot be written, ConfigError if there is no home folder.
    """
    file = record_file(kind, about)
    if not file.is_absolute():
        raise ConfigError(
            "cannot store confirmations: the user has no home folder",
            hint="set XDG_STATE_HOME to an absolute path",
        )
    record = {**about, **more, "confirmed": dt.datetime.now(dt.UTC).isoformat(timespec="seconds")}
    with writing(file.parent):
        if not file.parent.is_dir():
            try:
                make_folder(file.parent, 0o700)
            except FileExistsError:
                if not file.parent.is_dir():
                    raise
        replace_file(file, json.dumps(record, ensure_ascii=False, indent=1).encode() + b"\n")


def delete_record(kind: str, about: Mapping[str, str]) -> bool:
    """Delete the record of a confirmation; return whether it existed."""
    file = record_file(kind, about)
    with writing(file.parent):
        try:
            file.unlink()
        except FileNotFoundError:
            return False
    return True


def draw_identity(layout: Layout) -> str:
    """Give the index in this folder a new identity, which invalidates all confirmations; return it."""
    with writing(layout.root):
        identity = os.urandom(16).hex()
        aside = layout.identity.with_name(f"{layout.identity.name}.{identity}.tmp")
        try:
            write_file(aside, identity.encode("ascii") + b"\n")
            aside.replace(layout.identity)
        finally:
            aside.unlink(missing_ok=True)
    return identity_of(layout) or identity  # another process may have created an identity meanwhile


def identity_of(layout: Layout) -> str | None:
    """Return the identity of the index in a folder; None if it has none."""
    try:
        data = read_regular(layout.identity, 64)
    except OSError:
        return None
    return data.strip().decode("ascii") if _IDENTITY.fullmatch(data) else None


def _about(layout: Layout, identity: str, address: str) -> dict[str, str]:
    return {"index": os.path.realpath(layout.root), "identity": identity, "endpoint": address}
