"""Words with numbers, for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples:
        >>> counted(1, "document"), counted(1200, "document")
        ('1 document', '1,200 documents')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
