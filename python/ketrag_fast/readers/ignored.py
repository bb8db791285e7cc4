"""Files that a source leaves out: by the setting `exclude`, and by `.gitignore` files inside the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import ConfigError
from ketrag_fast.readers.ignore_patterns import ignore_spec

GITIGNORE: Final = ".gitignore"
_LONGEST: Final = 1_000_000
"""Bytes of a `.gitignore` file that are read."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Patterns with the folders that they are relative to; of two that match, the later one decides."""

    specs: tuple[tuple[str, Any], ...] = ()

    def matches(self, name: str, *, folder: bool = False) -> bool:
        """Return whether a file or folder is left out. `name` is its path in the source."""
        for prefix, spec in reversed(self.specs):
            if name.startswith(prefix):
                found = spec.check_file(name[len(prefix) :] + ("/" if folder else "")).include
                if found is not None:
                    return bool(found)
        return False

    def within(self, folder: Path, prefix: str) -> Ignored:
        """Return these patterns and those of the `.gitignore` in a folder, which override them."""
        try:
            with (folder / GITIGNORE).open("rb") as file:
                lines = file.read(_LONGEST).decode("utf-8", "replace").splitlines()
        except OSError:
            return self
        return Ignored((*self.specs, (prefix, ignore_spec([line for line in lines if _is_valid(line)]))))


def leaves_out(source: Path, changed: Path, exclude: str | None, *, gitignore: bool) -> bool:
    """Return whether a path in a source folder is hidden or ignored; it need not exist any more.

    A `.gitignore` file counts as a file of the source, because it decides about others.
    """
    try:
        parts = changed.relative_to(source).parts
    except ValueError:
        return False
    ignored, folder, prefix = excluded(exclude), source, ""
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        if part.startswith("."):
            return not (is_last and gitignore and part == GITIGNORE)
        if gitignore:
            ignored = ignored.within(folder, prefix)
        if ignored.matches(prefix + part, folder=not is_last or (folder / part).is_dir()):
            return True
        folder, prefix = folder / part, f"{prefix}{part}/"
    return False


def excluded(patterns: str | None) -> Ignored:
    """Return the patterns of the setting `exclude`, separated by commas. Raises ConfigError for a bad one."""
    names = [name.strip() for name in (patterns or "").split(",") if name.strip()]
    for name in names:
        if not _is_valid(name):
            raise ConfigError(
                f"exclude: {name!r} is not a pattern", hint="use patterns as in .gitignore: *.log"
            )
    return Ignored((("", ignore_spec(names)),)) if names else Ignored()


def _is_valid(line: str) -> bool:
    try:
        ignore_spec([line])
    except ValueError:
        return False
    return True
