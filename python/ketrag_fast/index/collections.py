"""Collections: named indexes in the user's data folder."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import ConfigError, IndexMissing, KetragError, ReadOnly
from ketrag_fast.query.source_paths import sources_of
from ketrag_fast.records import dataclass
from ketrag_fast.storage.layout import Layout

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_RESERVED: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}
)
"""File names that Windows does not allow."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A named index.

    Attributes:
        name: Name of the collection.
        path: Folder of the index.
        documents: Number of documents; None if the index cannot be read.
        size: Size of the folder in bytes.
        built: Time of the last build, in seconds since 1970; None if it was never finished.
        sources: Files, folders and globs from which it is built.
        description: Description of its contents, written by the user.
    """

    name: str
    path: Path
    documents: int | None
    size: int
    built: float | None
    sources: tuple[str, ...]
    description: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "name": self.name,
            "path": str(self.path),
            "documents": self.documents,
            "bytes": self.size,
            "built": self.built,
            "sources": list(self.sources),
            "description": self.description,
        }


def collections_folder() -> Path:
    """Return the folder of all collections, below XDG_DATA_HOME or the system's equivalent."""
    if os.name == "nt":
        named, usual = "LOCALAPPDATA", "~/AppData/Local"
    else:
        named, usual = (
            "XDG_DATA_HOME",
            "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share",
        )
    base = Path(os.environ.get(named, ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser(usual))  # noqa: PTH111 - Path.home() raises without a home
    return base / "ketrag" / "collections"


def check_name(name: str) -> str:
    """Return a collection name in lower case. Raises ConfigError if it is invalid."""
    plain = name.lower()
    if not _NAME.fullmatch(name) or plain.partition(".")[0] in _RESERVED or name.endswith("."):
        raise ConfigError(
            f"{name!r} cannot be the name of a collection",
            hint="use up to 63 letters, digits, - and _, such as notes",
        )
    return plain


def collection_path(name: str) -> Path:
    """Return the folder of a collection. Raises IndexMissing if no collection has this name."""
    path = collections_folder() / check_name(name)
    if not Layout(path).exists():
        known = collection_names()
        from difflib import get_close_matches

        near = get_close_matches(name, known, 1)
        listed = (
            f"there are: {', '.join(known[:10])}"
            if known
            else "`ketrag index SOURCE... --name NAME` builds one"
        )
        raise IndexMissing(
            f"there is no collection {name!r}", hint=f"did you mean {near[0]}?" if near else listed
        )
    return path


def collection_names() -> list[str]:
    """Return the names of all collections, sorted."""
    try:
        entries = sorted(collections_folder().iterdir())
    except OSError:
        return []
    return [entry.name for entry in entries if _NAME.fullmatch(entry.name) and Layout(entry).exists()]


def new_collection(name: str, sources: Iterable[str]) -> Path:
    """Return the folder in which to build or update a collection from these sources.

    Raises ConfigError if the collection exists with other sources, ReadOnly if its folder cannot be created.
    """
    path = collections_folder() / check_name(name)
    if Layout(path).exists():
        own = sources_of(path)
        others = [source for source in sources if not _is_in(source, own)]
        if others and own:
            raise ConfigError(
                f"there is a collection {name} already, of {', '.join(own[:3])}",
                hint=f"`ketrag index {others[0]} -c {name}` adds to it; or choose another name",
            )
        return path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ReadOnly(
            f"{path.parent} cannot be created: {error.strerror or error}",
            hint="set XDG_DATA_HOME (Windows: LOCALAPPDATA) to another folder, or name a folder with -i",
        ) from error
    return path


def _is_in(source: str, own: Iterable[str]) -> bool:
    whole = os.path.abspath(source)  # noqa: PTH100 - a glob is not a path
    return any(whole == spec or whole.startswith(spec.rstrip(os.sep) + os.sep) for spec in own)


def collections() -> list[Collection]:
    """Return all collections, sorted by name. For a damaged one the number of documents is None."""
    from ketrag_fast.index.annotations import descriptions_of

    found = []
    for name in collection_names():
        path = collections_folder() / name
        documents, built = _about(path)
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        about = descriptions_of(path).get("")
        found.append(Collection(name, path, documents, size, built, sources_of(path), about))
    return found


def _about(path: Path) -> tuple[int | None, float | None]:
    """Return the number of documents of an index and the time of its last build."""
    from ketrag_fast.storage.generation import open_current

    layout = Layout(path)
    try:
        generation = open_current(layout, "sizes")
        return int(generation.manifest.documents["count"]), layout.current.stat().st_mtime
    except (KetragError, OSError, KeyError, TypeError, ValueError):
        return None, None


def age_text(built: float | None) -> str:
    """Format the age of a build, such as `3 hours ago`.

    Examples:
        >>> age_text(time.time() - 7200)
        '2 hours ago'
    """
    if built is None:
        return "never finished"
    seconds = max(time.time() - built, 0)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count:,} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
