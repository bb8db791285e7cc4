"""Patterns of paths, such as `docs/**/*.md`, as regular expressions."""

from __future__ import annotations

from collections.abc import Sequence

from ketrag_fast.errors import InputError


def split_globs(globs: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the expressions of paths that are wanted, and of those that are not (`!PATTERN`).

    A pattern matches the end of a path from any folder on, and everything below a folder that it matches.
    Raises InputError for one that cannot be read.

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
    """Return the regular expression of a pattern.

    `*` and `?` match within a name, `**` across folders, `[a-z]` one of some letters, `{a,b}` one of several
    parts.
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
    """Return an expression that matches a letter."""
    return (
        f"\\{letter}"
        if letter.isascii() and not letter.isalnum() and letter.isprintable() and letter not in " _"
        else letter
    )
