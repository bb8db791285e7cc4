"""Wording of messages: numbers with nouns, and hints for missing names."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """Format a number with its noun in the singular or plural.

    Examples:
        >>> counted(1, "document"), counted(1200, "document")
        ('1 document', '1,200 documents')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def about_missing_name(name: str, similar: Iterable[str]) -> str:
    """Return a hint for a name that no node of a graph has, given the similar names.

    Examples:
        >>> about_missing_name("Gjoa", ["Gjøa"])
        'did you mean Gjøa?'
        >>> about_missing_name("no such", [])
        "no name is similar; `ketrag retrieve 'no such'` searches the text for it"
    """
    found = ", ".join(similar)
    if found:
        return f"did you mean {found}?"
    import shlex  # few messages need it

    return f"no name is similar; `ketrag retrieve {shlex.quote(name[:80])}` searches the text for it"


def outdated_files(files: Iterable[tuple[str | None, str]]) -> list[str]:
    """Return a sentence for each kind of change of files since the index was built.

    Args:
        files: The state ("changed", "missing" or None) and the name of the file of each result.

    Examples:
        >>> outdated_files([("changed", "a.md"), (None, "b.md")])
        ['a.md was changed since it was indexed: the indexed text is shown']
        >>> outdated_files([("missing", "a.md"), ("missing", "b.md")])
        ['a.md and 1 more do not exist any more: the indexed text is shown']
    """
    names: dict[str | None, dict[str, None]] = {}
    for state, name in files:
        names.setdefault(state, {})[name] = None
    found = []
    for state, one, several in (
        ("changed", "was changed since it was indexed", "were changed since they were indexed"),
        ("missing", "does not exist any more", "do not exist any more"),
    ):
        if first := next(iter(names.get(state, ())), None):
            more = len(names[state]) - 1
            text = f"{first} and {more:,} more {several}" if more else f"{first} {one}"
            found.append(f"{text}: the indexed text is shown")
    return found
