"""The title of a filing with the Securities and Exchange Commission: its cover names the company."""

from __future__ import annotations

import re
from typing import Final

_COVER: Final = 6_000
"""The cover page is in this many characters at the beginning."""
_REGISTRANT = re.compile(r"\(exact name of (?:the )?registrant", re.I)
_LONGEST: Final = 100
_FORM = re.compile(r"\bform[ \xa0]+(\d{1,2}-[A-Z]{1,2}|S-\d|F-\d)\b", re.I)


def filing_title(title: str, text: str) -> str:
    """Return the title of a filing with the company's name and the form, or the title as it is.

    >>> filing_title("FORM 10-Q", "FORM 10-Q\\n\\nApple Inc.\\n(Exact name of Registrant as specified)")
    'Apple Inc., Form 10-Q'
    """
    cover = text[:_COVER]
    found, form = _REGISTRANT.search(cover), _FORM.search(cover)
    if found is None or form is None:
        return title
    # The name is the last text in the lines before, which may end with a line to write on.
    lines = cover[: found.start()].rstrip(" \t_").rpartition("\n")[0].rstrip("_ \t\n")
    name = re.split("[\n\t]", lines)[-1][-_LONGEST:].strip(" _,")
    first = name.split()[0].lower() if name.split() else ""
    if not first or (first in title.lower() and form[1].lower() in title.lower()):
        return title
    return f"{name}, Form {form[1].upper()}"
