"""List the sources that an index names, and confirm that updates may read them; confirm settings files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.models.file_trust import files_named
from ketrag_fast.query.source_paths import sources_of
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.confirmations import confirm_settings, forget_settings
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_trust import confirm_sources, forget_sources, source_trust
from ketrag_fast.systems.index_settings import stored_settings

if TYPE_CHECKING:
    from ketrag_fast.base.config.settings_file import SettingsFile


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that an index names, and whether the user has named or confirmed it for this index."""

    spec: str
    trusted: bool

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `--json`."""
        return asdict(self)

    def sentence(self) -> str:
        """Return a sentence about what happens with the source."""
        return f"{self.spec} ({'confirmed' if self.trusted else 'not confirmed: it is not read'})"


def named_sources(path: str | os.PathLike[str]) -> list[NamedSource]:
    """Return the files, folders and globs that the index at `path` names, the files in its settings too.

    None of the former if its tables are damaged.
    """
    trust = source_trust(Layout(Path(path)))
    return [NamedSource(spec, trust.allows(spec)) for spec in _specs(Path(path))]


def trust_sources(path: str | os.PathLike[str], *, confirmed: bool = True) -> None:
    """Confirm that updates of the index at `path` may read all sources that it names now.

    The confirmation is stored in the user's state folder for this machine, path and index; a copy of the
    index does not inherit it. `confirmed=False` withdraws it.

    Raises:
        IndexMissing, ReadOnly: The index does not exist, or the state folder cannot be written.
    """
    layout = Layout(Path(path))
    layout.require()
    if confirmed:
        confirm_sources(layout, _specs(Path(path)))
    else:
        forget_sources(layout)


def _specs(path: Path) -> list[str]:
    return [*sources_of(path), *files_named(stored_settings(path) or {})]


def trust_settings(file: SettingsFile, *, confirmed: bool = True) -> None:
    """Confirm that a settings file may be used with its present content; `confirmed=False` withdraws it.

    Raises:
        ReadOnly: The state folder cannot be written.
    """
    if confirmed:
        confirm_settings(file)
    else:
        forget_settings(file)
