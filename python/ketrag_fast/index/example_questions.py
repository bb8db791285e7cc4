"""Example questions of an index, which its web page offers to new users."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import InputError
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.layout import Layout

MOST: Final = 50
"""Maximum number of questions."""
LONGEST: Final = 1_000
"""Maximum length of a question in characters."""
_BYTES: Final = 1_000_000
_HINT: Final = "write one question per line, or lines of JSON with `question` or `text`"


def read_examples(path: Path) -> tuple[str, ...]:
    """Read questions from a file: one per line, or JSON lines with `question` or `text`.

    Empty lines and lines that begin with # are skipped. Raises InputError if the file cannot be read, is
    not UTF-8, or a line is invalid JSON.
    """
    try:
        text = read_regular(path, _BYTES).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the example questions in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason} at byte {error.start}", hint=_HINT) from error
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return tuple(
        _question_of(path, number, line) for number, line in lines if line and not line.startswith("#")
    )


def _question_of(path: Path, number: int, line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    value = row.get("question", row.get("text")) if isinstance(row, dict) else None
    if not isinstance(value, str):
        raise InputError(f"line {number} of {path} is not an object with a question", hint=_HINT)
    return value


def checked_examples(questions: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct questions without surrounding blanks.

    Raises InputError if there are too many, or one is empty or too long.
    """
    if isinstance(questions, str):
        raise InputError("examples must be a list of questions, not one text")
    found = tuple(dict.fromkeys(" ".join(text.split()) for text in questions))
    if len(found) > MOST:
        raise InputError(f"an index has at most {MOST} example questions, got {len(found):,}")
    for text in found:
        if not 1 <= len(text) <= LONGEST:
            raise InputError(
                f"an example question must have 1 to {LONGEST:,} characters, got {len(text):,}: {text[:60]!r}"
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"an example question contains half of a surrogate pair: {text[:60]!r}")
    return found


def store_examples(folder: Path, questions: Sequence[str]) -> None:
    """Replace the example questions of an index. Raises IndexLocked while another build runs."""
    from ketrag_fast.storage.lock import builder_lock

    layout = Layout(folder)
    with builder_lock(layout):
        reading.keep_examples(layout, questions)
