"""Files that a source leaves out: by the setting `exclude`, and by the `.gitignore` files in and above it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.open_beneath import open_regular
from ketrag_fast.errors import ConfigError
from ketrag_fast.readers.file_types import LANGUAGES
from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.readers.repository import exclude_file, top_of

GITIGNORE: Final = ".gitignore"
_LONGEST: Final = 1_000_000
"""Maximum number of bytes read from a `.gitignore` file."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Ignore patterns with the folders they are relative to; the last matching pattern decides.

    A folder is given by its path in the source (`docs/`). For folders above the source, `above` has the paths
    of the source in them.
    """

    specs: tuple[tuple[str, Any], ...] = ()
    above: tuple[tuple[str, Any], ...] = ()

    def matches(self, name: str, *, folder: bool = False) -> bool:
        """Return whether a file or folder is left out. `name` is its path in the source."""
        for prefix, spec in reversed(self.specs):
            if name.startswith(prefix):
                found = spec.check_file(name[len(prefix) :] + ("/" if folder else "")).include
                if found is not None:
                    return bool(found)
        for path, spec in reversed(self.above):
            found = spec.check_file(path + name + ("/" if folder else "")).include
            if found is not None:
                return bool(found)
        return False

    def within(self, folder: Path, prefix: str, root: Path | None) -> Ignored:
        """Return these patterns and those of the `.gitignore` in a folder, which override them.

        With `root`, the `.gitignore` is read only if it is inside that folder after all links.
        """
        spec = _spec_in(folder / GITIGNORE, root)
        return self if spec is None else Ignored((*self.specs, (prefix, spec)), self.above)

    def below(self, source: Path) -> tuple[Ignored, list[Path]]:
        """Return these patterns and those of the repository above a source, and the files that have them.

        They do not hold in a source that they ignore as a whole: a user who names it wants it.
        """
        here = Path(os.path.abspath(source))  # noqa: PTH100 - links stay
        top = top_of(str(here))
        if top is None:
            return self, []
        parents = [parent for parent in reversed(here.parents) if parent.is_relative_to(top)]
        files = [(exclude_file(Path(top)), Path(top))]
        files += [(parent / GITIGNORE, parent) for parent in parents]
        found = [(file, base, spec) for file, base in files if (spec := _spec_in(file, None)) is not None]
        for folder in (here, *parents):
            own = tuple((_path(folder, base), spec) for _, base, spec in found if base in folder.parents)
            if Ignored(above=own).matches("", folder=True):
                return self, []
        above = tuple((_path(here, base), spec) for _, base, spec in found)
        return Ignored(self.specs, tuple((f"{path}/" if path else "", spec) for path, spec in above)), [
            file for file, _, _ in found
        ]


def _path(folder: Path, base: Path) -> str:
    """Return the path of a folder in one above it; empty for the same folder."""
    path = folder.relative_to(base).as_posix()
    return "" if path == "." else path


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

    A `.gitignore` file counts as a file of the source, because it decides about others.
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
            return not (is_last and gitignore and part == GITIGNORE)
        if gitignore:
            ignored = ignored.within(folder, prefix, None if follow else source)
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


_STAR: Final = r"\[\^/\]\*"
_FIXED: Final = r"(?:\\.|\[\^?+\]?+(?:\\.|[^\]\\])*+\]|[^\\\[\]/().*+?^$|{}])(?![*+?{])"
_STAR_AND_REST: Final = re.compile(rf"{_STAR}((?:{_FIXED})*+)(?={_STAR})", re.DOTALL)
_ESCAPED_OR_CLASS: Final = re.compile(r"\\.|(?!\[\^/\])\[\^?+\]?+(?:\\.|[^\]\\])*+\]?+", re.DOTALL)
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
    source = _ESCAPED_OR_CLASS.sub(_without_slash, _STAR_AND_REST.sub(_first_match, source))
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
