"""The length of titles and of heading paths.

A title is repeated in front of every passage of its document, and each name of a heading path in the location
of every passage below it, so a long one costs its length times the number of passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ketrag_fast.records import replace
from ketrag_fast.types import Document

LONGEST_TITLE: Final = 300
"""Maximum number of characters of a title.

It bounds what passages repeat: with 300 characters, a passage of 400 tokens grows by at most a sixth. The
longest title in the question sets of the project has 214 characters; a limit of 200 would cut titles of CACM.
"""
LONGEST_NAME: Final = 200
"""Maximum number of characters of a heading; longer text in large letters is a paragraph."""
LONGEST_ADDRESS: Final = 500
"""Maximum number of characters of the path of a value in a JSON or XML file."""
DEEPEST_PATH: Final = 12
"""Maximum number of headings in a path, twice as many as a location prints. The innermost are kept."""


def cut_title(document: Document) -> Document:
    """Return a document with a title of at most `LONGEST_TITLE` characters.

    A longer title is cut. If the text does not contain the whole title, it becomes the last paragraph, so
    that it is still found and all offsets in the text stay as they are.
    """
    title, text = document.title, document.text
    if len(title) <= LONGEST_TITLE:
        return document
    whole = title.strip()
    more = "" if whole in text else f"\n\n{whole}"
    return replace(document, title=cut_name(title, LONGEST_TITLE), text=text + more)


def cut_name(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name on one line, cut after `most` characters."""
    plain = " ".join(name.split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def cut_address(path: str) -> str:
    """Return the end of a path in a JSON or XML file, which every value below it repeats."""
    return path if len(path) <= LONGEST_ADDRESS else f"…{path[1 - LONGEST_ADDRESS :]}"


def cut_path(names: Sequence[str]) -> list[str]:
    """Return the innermost names of a path."""
    return list(names[-DEEPEST_PATH:])
