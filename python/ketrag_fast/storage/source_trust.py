"""Whether the sources that an index names may be read: only those that its user has named or confirmed.

An index stores absolute paths of its sources and may come from somebody else: in an archive, in a bundle, as
a copy. Its author could name `~/.ssh`, and the next update would index those files. Each source that
the user names for a build is therefore recorded in the user's state folder, for one machine, one absolute
path of the index and one identity (see `confirmations`). An update reads no other source, and the documents
of sources that are not read stay in the index.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from ketrag_fast.base.hashes import blake2b
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.base.user_records import INDEXES, read_record
from ketrag_fast.errors import KetragError
from ketrag_fast.records import dataclass
from ketrag_fast.storage.confirmations import (
    delete_record,
    draw_identity,
    identity_of,
    write_record,
)
from ketrag_fast.storage.layout import Layout

_MACHINE_ID: Final = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True)
class SourceTrust:
    """The sources of one index that may be read."""

    layout: Layout
    confirmed: frozenset[str]

    def allows(self, spec: str) -> bool:
        """Return whether a source, given by its absolute path or glob, may be read."""
        return spec in self.confirmed

    def why_not(self, specs: Iterable[str]) -> str | None:
        """Return why some of the sources may not be read, as a clause; None if all may be.

        The clause names no source, because it is also shown to callers that may not see all of them.
        """
        if all(map(self.allows, specs)):
            return None
        return (
            "the index was not made in this folder of this machine, so its sources are not read; "
            f"`{self.command}` confirms them"
        )

    @property
    def command(self) -> str:
        """The command that confirms the sources."""
        from shlex import quote  # only errors need it

        return f"ketrag trust -i {quote(str(self.layout.root))} --sources"


def source_trust(layout: Layout) -> SourceTrust:
    """Return which sources of the index in a folder may be read."""
    root = Layout(layout.root.parent) if layout.is_generation() else layout
    identity = identity_of(root)
    record = None if identity is None else read_record(INDEXES, _about(root, identity))
    listed = None if record is None else record.get("sources")
    return SourceTrust(root, frozenset(map(str, listed)) if isinstance(listed, list) else frozenset())


def confirm_sources(layout: Layout, specs: Iterable[str], *, only: bool = False) -> None:
    """Record that some sources of an index may be read; with `only`, no others may be from now on.

    Raises ReadOnly or StorageFull if the state folder, or an index folder without an identity, cannot be
    written; ConfigError if the user has no home folder.
    """
    known = source_trust(layout).confirmed
    wanted = frozenset(specs) if only else known.union(specs)
    if wanted == known:
        return
    identity = identity_of(layout) or draw_identity(layout)
    write_record(INDEXES, _about(layout, identity), sources=sorted(wanted))


def note_sources(layout: Layout, specs: Iterable[str], *, only: bool = False) -> list[str]:
    """Record sources that the user has named, as `confirm_sources` does; return a warning if that fails."""
    listed = list(specs)
    try:
        if listed:
            confirm_sources(layout, listed, only=only)
    except KetragError as error:
        return [
            f"the sources could not be noted as named by you ({error.message}): later builds read them only "
            "if they are named again"
        ]
    return []


def forget_sources(layout: Layout) -> bool:
    """Delete the confirmation of all sources of an index; return whether it existed."""
    identity = identity_of(layout)
    return identity is not None and delete_record(INDEXES, _about(layout, identity))


def _about(layout: Layout, identity: str) -> dict[str, str]:
    return {"index": os.path.realpath(layout.root), "identity": identity, "machine": _machine()}


@cache
def _machine() -> str:
    """Return a hash that identifies this machine, which may share home folders and disks with others.

    The name of the machine is used if the system has no identifier. Containers without one count as the same
    machine, because their names change with each start.
    """
    found = ""
    if sys.platform == "linux":
        try:
            found = read_regular(_MACHINE_ID, 256).decode("ascii", "replace").strip()
        except OSError:
            found = ""
    else:
        import platform

        found = platform.node().partition(".")[0]
    return blake2b(found.encode(), digest_size=8, person=b"ketrag").hexdigest()
