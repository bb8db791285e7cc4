"""Selects documents by glob and passages by pattern, in addition to the filters on metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ketrag_fast import _core
from ketrag_fast.base.memory import map_threads
from ketrag_fast.base.scopes import scope_mask
from ketrag_fast.errors import InputError
from ketrag_fast.storage.source_files import base_of

if TYPE_CHECKING:
    from ketrag_fast.query.open_generation import FilterMask, Opened
    from ketrag_fast.query.source_paths import SourcePaths

_BLOCK = 4096
"""Number of passages that are matched at once: a few megabytes of text."""


def documents_of_globs(
    opened: Opened, globs: str | Sequence[str] | None, paths: SourcePaths, *, whole: bool = False
) -> bytes | None:
    """Return a mask of the documents whose paths match the globs; None without a glob.

    The path is that of the document's file, or its id if it has no file. With `whole`, patterns without a
    slash also match the folders above a source, and case does not matter.
    """
    wanted, unwanted = split_globs(globs)
    if not wanted and not unwanted:
        return None
    names = opened.texts.names
    specs = paths.specs() if whole or any("/" in one for one in _bare([*wanted, *unwanted])) else {}
    bases = {spec: base_of(spec) for spec in set(specs.values())}
    folders = {spec: (base.parent if base.is_file() else base).as_posix() for spec, base in bases.items()}
    paths_of = [f"{folders[specs[name]]}/{name}" if name in specs else name for name in names]
    matches = _any(wanted, paths_of, any_case=whole) if wanted else b"\1" * len(names)
    if unwanted:
        matches = bytes(map(int.__gt__, matches, _any(unwanted, paths_of, any_case=whole)))
    return matches


def match_paths(globs: str | Sequence[str] | None, paths: Sequence[str]) -> list[str]:
    """Return the paths that match the globs; all without a glob."""
    wanted, unwanted = split_globs(globs)
    marks = _any(wanted, paths, any_case=False) if wanted else b"\1" * len(paths)
    if unwanted:
        marks = bytes(map(int.__gt__, marks, _any(unwanted, paths, any_case=False)))
    return [path for path, mark in zip(paths, marks, strict=True) if mark]


def _bare(expressions: Sequence[str]) -> list[str]:
    """Return expressions without their common prefix and suffix."""
    return [one.removeprefix("^(?:.*/)?").removesuffix("(?:[#:/].*)?$") for one in expressions]


def _any(expressions: Sequence[str], names: Sequence[str], *, any_case: bool) -> bytes:
    return _core.Pattern("|".join(expressions), any_case=any_case).mask(names)


def units_of_pattern(
    opened: Opened, pattern: _core.Pattern, units: bytes | None, check: Callable[[], object]
) -> bytes:
    """Return a mask of the units, all or those in a mask, that have a line matching a pattern.

    `check` is called between blocks and may raise.
    """
    documents, count = opened.texts.core, len(opened.searcher)

    def match(first: int) -> bytes:
        check()
        return documents.units_matching(pattern, first, min(first + _BLOCK, count), units)

    return b"".join(map_threads(match, range(0, count, _BLOCK), opened.threads))


def in_scope(opened: Opened, filtered: FilterMask | None, only: str | None) -> FilterMask | None:
    """Return the units of a mask, or of all, whose files are in a scope."""
    if only is None:
        return filtered
    from ketrag_fast.query.open_generation import mask_of

    known: dict[str, bytes] = vars(opened).setdefault("_scopes", {})
    if only not in known:
        known[only] = opened.texts.core.units_of(scope_mask(only, opened.texts.names))
    units = known[only]
    return mask_of(units if filtered is None else bytes(map(int.__and__, units, filtered.mask)))


def split_globs(globs: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the expressions of included paths and of excluded paths (`!PATTERN`).

    A pattern matches from the root or from any folder, and includes everything in a folder that it matches.
    Raises InputError for an invalid pattern.

    Examples:
        >>> split_globs(["*.md", "!draft-?.md"])
        (['^(?:.*/)?[^/]*\\\\.md(?:[#:/].*)?$'], ['^(?:.*/)?draft\\\\-[^/]\\\\.md(?:[#:/].*)?$'])
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    for glob in [globs] if isinstance(globs, str) else globs or ():
        if not isinstance(glob, str) or not glob.strip("!/"):
            raise InputError(f"{glob!r} is not a pattern of paths", hint="such as *.md or docs/**/*.md")
        (unwanted if glob.startswith("!") else wanted).append(expression(glob.removeprefix("!")))
    return wanted, unwanted


def expression(glob: str) -> str:
    """Return the regular expression for a glob pattern.

    `*` and `?` match within a name, `**` matches across folders, `[a-z]` matches one letter of a set, and
    `{a,b}` matches one of several strings.
    """
    text = glob.replace("\\", "/").strip("/")
    out = ["^(?:.*/)?"]
    at = depth = 0
    while at < len(text):
        letter = text[at]
        end = text.find("]", at + 2)
        at += 1
        if text.startswith("**/", at - 1):
            out.append("(?:.*/)?")
            at += 2
        elif text.startswith("**", at - 1):
            out.append(".*")
            at += 1
        elif letter in "*?":
            out.append("[^/]*" if letter == "*" else "[^/]")
        elif letter == "[" and end > 0:
            inner = text[at:end]
            out.append(f"[{'^/' if inner[0] in '!^' else ''}{_class(inner.lstrip('!^'))}]")
            at = end + 1
        elif letter == "{" and "}" in text[at:]:
            out.append("(?:")
            depth += 1
        elif letter == "}" and depth:
            out.append(")")
            depth -= 1
        else:
            out.append("|" if letter == "," and depth else _escaped(letter))
    if depth:
        raise InputError(f"{glob!r} has an open brace", hint="write {a,b}, or [{] for a brace")
    return "".join(out) + "(?:[#:/].*)?$"


def _class(letters: str) -> str:
    return "".join(letter if letter == "-" else _escaped(letter) for letter in letters)


def _escaped(letter: str) -> str:
    """Return a regular expression that matches one literal letter."""
    return (
        f"\\{letter}"
        if letter.isascii() and not letter.isalnum() and letter.isprintable() and letter not in " _"
        else letter
    )
