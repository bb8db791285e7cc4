"""Files that a source leaves out: by the setting `exclude`, and by the ignore files in and above it."""

from __future__ import annotations

import os
import re
from collections.abc import Container
from pathlib import Path
from typing import Any, Final, NamedTuple

from ketrag_fast.base.open_beneath import open_regular
from ketrag_fast.errors import ConfigError
from ketrag_fast.readers.file_types import LANGUAGES
from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.readers.repository import GIT, exclude_file, top_of
from ketrag_fast.records import dataclass

GITIGNORE: Final = ".gitignore"
IGNORE_FILES: Final = (GITIGNORE, ".ignore", ".rgignore")
"""Files with ignore patterns. Those of a later one win, in whichever folder they are, as in ripgrep."""
_LONGEST: Final = 1_000_000
"""Maximum number of bytes read from a file with ignore patterns."""


class _Patterns(NamedTuple):
    """Ignore patterns of a folder.

    Attributes:
        rank: The position of their file in `IGNORE_FILES`.
        prefix: The path of the folder in the source (`docs/`); empty for a folder above the source.
        path: The path of the source in the folder, if that is above the source.
        spec: The compiled patterns.
        is_setting: Whether they are those of the setting `exclude`, which hold in inner repositories too.
    """

    rank: int
    prefix: str
    path: str
    spec: Any
    is_setting: bool = False


@dataclass(frozen=True, slots=True)
class Ignored:
    """Ignore patterns in ascending order of precedence: the last matching pattern decides."""

    patterns: tuple[_Patterns, ...] = ()

    def matches(self, name: str, *, folder: bool = False) -> bool:
        """Return whether a file or folder is left out. `name` is its path in the source."""
        end = "/" if folder else ""
        for one in reversed(self.patterns):
            if name.startswith(one.prefix):
                found = one.spec.check_file(one.path + name[len(one.prefix) :] + end).include
                if found is not None:
                    return bool(found)
        return False

    def within(
        self, folder: Path, prefix: str, root: Path | None, names: Container[str] | None = None
    ) -> tuple[Ignored, list[Path]]:
        """Return these patterns and those of the files in a folder, and the files.

        In a repository inside the source, the patterns of the repository around it do not hold, as in Git.
        With `root`, a file is read only if it is inside that folder after all links. `names` are the names in
        the folder, if they are known.
        """
        here = [name for name in (*IGNORE_FILES, GIT) if _is_in(folder, name, names)]
        if not here:
            return self, []
        files = [(rank, folder / name) for rank, name in enumerate(IGNORE_FILES) if name in here]
        kept = self.patterns
        if GIT in here and prefix:
            kept = tuple(one for one in kept if one.rank or one.is_setting)
            files.insert(0, (0, exclude_file(folder)))
        specs = ((rank, _spec_in(file, root if file.parent == folder else None)) for rank, file in files)
        found = (_Patterns(rank, prefix, "", spec) for rank, spec in specs if spec is not None)
        return _sorted(*kept, *found), [file for _, file in files if os.path.lexists(file)]

    def below(self, source: Path) -> tuple[Ignored, list[Path]]:
        """Return these patterns and those of the repository above a source, and the files that have them.

        They do not hold in a source that they ignore as a whole: a user who names it wants it.
        """
        here = Path(os.path.abspath(source))  # noqa: PTH100 - links stay
        top = top_of(str(here))
        if top is None:
            return self, []
        parents = [parent for parent in reversed(here.parents) if parent.is_relative_to(top)]
        files = [(exclude_file(Path(top)), Path(top), 0)]
        files += [(at / name, at, rank) for at in parents for rank, name in enumerate(IGNORE_FILES)]
        specs = [(file, base, rank, _spec_in(file, None)) for file, base, rank in files]
        found = [(file, base, rank, spec) for file, base, rank, spec in specs if spec is not None]
        for folder in (here, *parents):
            own = (
                _Patterns(rank, "", _path(folder, base), spec)
                for _, base, rank, spec in found
                if base in folder.parents
            )
            if _sorted(*own).matches("", folder=True):
                return self, []
        above = (_Patterns(rank, "", _path(here, base, "/"), spec) for _, base, rank, spec in found)
        return _sorted(*above, *self.patterns), [file for file, *_ in found]


def _sorted(*patterns: _Patterns) -> Ignored:
    return Ignored(tuple(sorted(patterns, key=lambda one: one.rank)))


def _is_in(folder: Path, name: str, names: Container[str] | None) -> bool:
    return os.path.lexists(folder / name) if names is None else name in names


def _path(folder: Path, base: Path, end: str = "") -> str:
    """Return the path of a folder in one above it, with a suffix; empty for the same folder."""
    path = folder.relative_to(base).as_posix()
    return "" if path == "." else path + end


def _spec_in(path: Path, root: Path | None) -> Any:
    """Return the spec of the valid patterns in a file, or None if it cannot be read."""
    try:
        with open_regular(path, root) as file:
            lines = file.read(_LONGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return ignore_spec([line for line in lines if _is_valid(line)])


def leaves_out(
    source: Path, changed: Path, exclude: str | None, *, gitignore: bool, follow: bool = False
) -> bool:
    """Return whether a path in a source folder is hidden or ignored; it need not exist any more.

    A file with ignore patterns counts as a file of the source, because it decides about others.
    """
    try:
        parts = changed.relative_to(source).parts
    except ValueError:
        return False
    ignored, folder, prefix = excluded(exclude), source, ""
    if gitignore:
        ignored, _ = ignored.below(source)
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        if part.startswith("."):
            return not (is_last and gitignore and part in IGNORE_FILES)
        if gitignore:
            ignored, _ = ignored.within(folder, prefix, None if follow else source)
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
    return Ignored((_Patterns(0, "", "", ignore_spec(names), True),)) if names else Ignored()


def _is_valid(line: str) -> bool:
    try:
        ignore_spec([line])
    except ValueError:
        return False
    return True


_STAR: Final = r"\[\^/\]\*"
_FIXED: Final = r"(?:\\.|\[\^?+\]?+(?:\\.|[^\]\\])*+\]|[^\\\[\]/().*+?^$|{}])(?![*+?{])"
_STAR_AND_REST: Final = rf"(?s){_STAR}((?:{_FIXED})*+)(?={_STAR})"
_ESCAPED_OR_CLASS: Final = r"(?s)\\.|(?!\[\^/\])\[\^?+\]?+(?:\\.|[^\]\\])*+\]?+"
"""Compiled by their first use, which few edits make."""
_FOLDERS: Final = "(?:/.+)?/"
"""The regular expression for `/**/`."""
_ANYWHERE: Final = "^(?:.+/)?"
"""The beginning of a pattern that may match in any folder."""


def ignore_spec(lines: list[str]) -> Any:
    """Return the spec of some lines. Raises ValueError if one is not a pattern."""
    from pathspec import GitIgnoreSpec

    patterns = list(GitIgnoreSpec.from_lines(lines).patterns)
    for pattern in patterns:
        if pattern.regex is not None:
            pattern.regex = re.compile(linear(pattern.regex.pattern))
    try:
        return GitIgnoreSpec(patterns, backend="simple")  # older versions of `re` lack atomic groups
    except TypeError:  # pathspec before 1.0 has one backend
        return GitIgnoreSpec(patterns)


def linear(source: str) -> str:
    """Return a regular expression of pathspec rewritten so that it does not backtrack into a star.

    A class such as `[!a]` matches no slash here, as in Git; in pathspec it does.
    """
    source = re.sub(_ESCAPED_OR_CLASS, _without_slash, re.sub(_STAR_AND_REST, _first_match, source))
    first, *rest = source.split(_FOLDERS)
    if not rest:
        return first
    if first.startswith(_ANYWHERE):
        first = f"^(?>(?:.+?/)??{first.removeprefix(_ANYWHERE)}(?=/))"
    middle = "".join(f"(?>(?:/.+?)??/{part}(?=/))" for part in rest[:-1])
    return f"{first}{middle}{_FOLDERS}{rest[-1]}"


def _first_match(found: re.Match[str]) -> str:
    return f"(?>[^/]*?{found[1]})" if found[1] else ""


def _without_slash(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("\\") else f"(?!/){found[0]}"


_CODE: Final = frozenset((*LANGUAGES, "code", "source"))
_SCRIPTS: Final = frozenset(("javascript", "typescript", "tsx"))
_MINIFIED: Final = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html?)", re.I)
_LOCKS: Final = frozenset(
    (
        *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "go.sum"),
        *("gradle.lockfile", "package.resolved", "deno.lock", "uv.lock"),
    )
)
_HEAD: Final = 1 << 16
"""Number of bytes at the beginning of a file that are examined."""
_SMALL: Final = 1_000
"""A script with fewer bytes is never minified."""
_LONG: Final = 500
"""Minimum average line length of a minified script, in bytes."""
_FIRST_LINES: Final = 20
_COMMENT: Final = re.compile(rb"\s*(?:#|//|/\*|\*|--|;|<!--|\"\"\")")
_GENERATED: Final = re.compile(
    rb"@generated\b|<auto-?generated|\bgenerated\b.*\n?.*\bdo not (?:edit|modify|change)\b"
    rb"|\bdo not (?:edit|modify|change)\b.*\n?.*\bgenerated\b",
    re.I,
)
_ONLY_MARK: Final = re.compile(
    rb"\W*do not (?:edit|modify)(?: this file)?(?: (?:by hand|manually))?\W*", re.I
)


def reason(file: SourceFile, kind: str) -> str | None:
    """Return why a file of a kind is generated; None if it is not. Raises OSError."""
    name = file.id.rpartition("/")[2].lower()
    if name in _LOCKS or name.endswith(".lock"):
        return "a lock file"
    if name.endswith(".map"):
        return "a source map"
    if _MINIFIED.search(name):
        return "minified, by its name"
    if kind not in _CODE:
        return None
    head = file.head(_HEAD)
    if (kind in _SCRIPTS or name.endswith(".css")) and len(head) >= _SMALL:
        length = len(head) // (head.count(b"\n") + 1)
        if length > _LONG:
            return f"minified: its lines have {length:,} bytes on average"
    if _is_marked(head):
        return "generated, by its first lines"
    return None


def _is_marked(head: bytes) -> bool:
    """Return whether the comments in the first lines of code report that a program wrote it."""
    lines = head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]
    comments = [line[:_LONG] for line in lines if _COMMENT.match(line)]
    return any(map(_ONLY_MARK.fullmatch, comments)) or bool(_GENERATED.search(b"\n".join(comments)))
