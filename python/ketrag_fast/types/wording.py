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
