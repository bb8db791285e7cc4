"""Descriptions of folders and example questions, which users add to an index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import InputError, KetragError, UnknownName
from ketrag_fast.query.source_paths import sources_of
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.layout import Layout

LONGEST_DESCRIPTION: Final = 500
"""Maximum length of a description in characters."""
MOST_EXAMPLES: Final = 50
"""Maximum number of questions."""
LONGEST_EXAMPLE: Final = 1_000
"""Maximum length of a question in characters."""
_BYTES: Final = 1_000_000
_HINT: Final = "write one question per line, or lines of JSON with `question` or `text`"


def descriptions_of(folder: Path) -> dict[str, str]:
    """Return the descriptions of an index by folder; the key "" has the description of the whole index."""
    from ketrag_fast.storage.source_table import open_sources

    tables = Layout(folder).tables
    if not tables.is_file():
        return {}
    try:
        with open_sources(tables) as opened:
            return opened.folder_descriptions()
    except KetragError:
        return {}


def descriptions_with(described: Mapping[str, str], paths: Iterable[str | None]) -> dict[str, str]:
    """Return the descriptions of the whole index, and of files and folders that contain one of the paths."""
    shown = [path for path in paths if path is not None]
    return {
        key: text for key, text in described.items() if not key or any(_is_in(path, key) for path in shown)
    }


def annotate(folder: Path, text: str | None, place: str | os.PathLike[str] | None) -> None:
    """Store the description of a folder, a file or the whole index; without `text`, remove it.

    Raises InputError for a text that is empty or too long, UnknownName if no source contains the path,
    IndexLocked while a build runs.
    """
    from ketrag_fast.storage.lock import builder_lock

    layout = Layout(folder)
    layout.require()
    plain = None if text is None else " ".join(text.split())
    if plain is not None and not 1 <= len(plain) <= LONGEST_DESCRIPTION:
        raise InputError(f"a description has 1 to {LONGEST_DESCRIPTION} characters, got {len(plain):,}")
    key = ""
    if place is not None:
        key = os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111 - links stay
        known = sources_of(folder)
        if not any(_is_in(key, spec) or _is_in(spec, key) for spec in known):
            raise UnknownName(
                f"{os.fspath(place)} is not in the index", hint=f"its sources are: {', '.join(known[:5])}"
            )
    with builder_lock(layout):
        reading.keep_description(layout, key, plain)


def description_for(path: str, described: Mapping[str, str]) -> str | None:
    """Return the description of the innermost described folder that contains a file.

    Examples:
        >>> description_for("/notes/work/a.md", {"/notes": "mine", "/notes/work": "projects"})
        'projects'
    """
    inner = max((key for key in described if key and _is_in(path, key)), key=len, default=None)
    return None if inner is None else described[inner]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)


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
    return tuple(_question_of(path, n, line) for n, line in lines if line and not line.startswith("#"))


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
    if len(found) > MOST_EXAMPLES:
        raise InputError(f"an index has at most {MOST_EXAMPLES} example questions, got {len(found):,}")
    for text in found:
        if not 1 <= len(text) <= LONGEST_EXAMPLE:
            raise InputError(
                f"an example question must have 1 to {LONGEST_EXAMPLE:,} characters, "
                f"got {len(text):,}: {text[:60]!r}"
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
