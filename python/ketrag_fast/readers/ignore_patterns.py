"""Patterns as in `.gitignore` that take time in proportion to a path, whatever the pattern is.

pathspec translates a pattern into a regular expression in which every `*` and `**` may end anywhere. With
five stars, a file name of 200 characters takes hours. Here each star but the last ends at the first position
where the text up to the next star matches, as in `fnmatch`. The same paths match, because that text has a
fixed length (for `**`, a fixed number of folders), so an early end leaves most of the path to the rest.
"""

from __future__ import annotations

import re
from typing import Any, Final

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
        return GitIgnoreSpec(patterns, backend="simple")  # others do not know atomic groups
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
