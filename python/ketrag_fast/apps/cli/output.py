"""Output of the command: the result on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.terminal import in_json, inline, visible
from ketrag_fast.errors import ConfigError, KetragError, ReadOnly
from ketrag_fast.secrets import redact, redact_all

if TYPE_CHECKING:
    from ketrag_fast.types import Context, Failure, Hits, Passage

_CODES = {
    "config": 2,
    "input": 2,
    "empty_query": 2,
    "index_missing": 4,
    "index_damaged": 4,
    "index_incompatible": 4,
    "model_mismatch": 4,
    "mode_unavailable": 4,
    "network_forbidden": 5,
    "endpoint_not_confirmed": 5,
    "settings_not_confirmed": 5,
    "cancelled": 130,
}
PARTIAL = 3
INTERRUPTED = 130
_SHOWN = 20
_NAMED = 3
"""Maximum number of documents with a copy that are listed."""


_MOST_UNKNOWN: Final = 10
"""Maximum number of unknown words that are listed."""
_EMPTY: Final = {
    "empty_index": "the index is empty",
    "no_match": "nothing in the index matches the query",
    "below_min_score": "no passage is as relevant as --min-score",
    "nothing_fits_filter": "no document matches the filter",
    "budget_too_small": "the budget is too small",
}


def empty_text(reason: str, top: int | None = None, unknown: Sequence[str] = ()) -> str:
    """Return a sentence that explains why a context has no passages.

    `top` is the limit on their number, `unknown` are the words of the query that no document has.
    """
    text = f"no passages: {'none were wanted (top is 0)' if top == 0 else _EMPTY.get(reason, reason)}"
    if reason != "no_match" or not unknown:
        return text
    more = f" and {len(unknown) - _MOST_UNKNOWN:,} more words" if len(unknown) > _MOST_UNKNOWN else ""
    words = ", ".join(f'"{word}"' for word in unknown[:_MOST_UNKNOWN])
    return f"{text}; no document has {words}{more}"


def say_reading(result: Hits | Context, top: int | None = None) -> None:
    """Print how a query was read, and why nothing was found if so."""
    for note in result.notes:
        say(inline(note))
    if result.reason is not None:
        say(inline(empty_text(result.reason, top, result.unknown)))


_notices: list[str] = []
"""Notices that the next JSON result, or the error, of this command has as the field `notices`."""


def prepare() -> None:
    """Switch stdout and stderr to UTF-8; characters that a terminal cannot show are escaped."""
    _notices.clear()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def exit_code(error: KetragError) -> int:
    """Return the exit code of a typed error."""
    return _CODES.get(error.code, 1)


class OutputClosed(BrokenPipeError):
    """The program that reads stdout has ended; `code` is the exit code of the finished work."""

    def __init__(self, code: int) -> None:
        self.code = code


def write_json(data: Mapping[str, Any], code: int = 0) -> None:
    """Write one line of JSON to stdout, with the notices; terminal control characters are escaped."""
    write(_json(_with_notices(data)), code)


def notice(text: str, *, as_json: bool) -> None:
    """Print a notice to stderr, or add it to the next JSON result or error."""
    if as_json:
        _notices.append(redact_all(text))
    else:
        say(text)


def write_notices() -> None:
    """Print notices as a line of JSON to stderr, for results that are not a JSON object."""
    if _notices:
        say(_json(_with_notices({"schema": "ketrag/notices/1"})))


def _with_notices(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if not _notices:
        return data
    found = {**data, "notices": list(_notices)}
    _notices.clear()
    return found


def write(text: str, code: int = 0) -> None:
    """Write lines of the result to stdout. Raises OutputClosed with the code."""
    write_styled(visible(redact(text)), code)


def write_styled(text: str, code: int = 0) -> None:
    """Write lines that have colours and links, and whose untrusted parts are escaped already."""
    try:
        sys.stdout.write(redact(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed(code) from None


def page_path(text: str | None) -> Path | None:
    """Return the file of `--html`. Raises ConfigError, before long work starts, if it cannot be created."""
    if text is None:
        return None
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ConfigError(
            f"--html {path}: the folder does not exist, or the path is a folder",
            hint="name a file in a folder that exists",
        )
    return path


def write_page(path: Path, text: str) -> None:
    """Write the page of `--html`."""
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReadOnly(f"{path}: cannot be written: {error.strerror or error}") from None


def say(text: str) -> None:
    """Print a line to stderr."""
    _tell(visible(redact_all(text)))


def warn(text: str) -> None:
    """Print a warning to stderr."""
    _tell(f"{_paint('ketrag: warning:', 33)} {inline(redact_all(text))}")


def error_json(error: KetragError) -> dict[str, Any]:
    """Return an error as JSON data."""
    return {"schema": "ketrag/error/1", "code": error.code, "message": error.message, "hint": error.hint}


def fail(error: KetragError, *, as_json: bool) -> int:
    """Print an error and its hint to stderr; return the exit code."""
    if as_json:
        say(_json(_with_notices(error_json(error))))
    else:
        _tell(f"{_paint('ketrag: error:', 31)} {inline(error.message)}")
        if error.hint:
            _tell(f"{_paint('hint:', 36)} {inline(redact_all(error.hint))}")
    return exit_code(error)


def report_interrupt(hint: str, *, as_json: bool) -> int:
    """Report an interruption and how to continue; return the exit code."""
    if as_json:
        say(
            json.dumps(
                {"schema": "ketrag/error/1", "code": "interrupted", "message": "interrupted", "hint": hint}
            )
        )
    else:
        _tell(f"\nketrag: interrupted\n{_paint('hint:', 36)} {hint}")
    return INTERRUPTED


_FAILURES: Final = {
    "document": ("document could not be read", "documents could not be read"),
    "part": ("document was read in part", "documents were read in part"),
    "chunk": ("chunk could not be read", "chunks could not be read"),
    "source": ("source could not be read", "sources could not be read"),
    "unknown": ("id is not in the index", "ids are not in the index"),
}


def report_failures(failures: Iterable[Failure], *, listed: bool = True) -> None:
    """Print to stderr how many failures of each code there are, and list them if `listed` is set."""
    every = list(failures)
    for code, texts in _FAILURES.items():
        own = [one for one in every if one.code == code or (code == "document" and one.code not in _FAILURES)]
        if own:
            warn(f"{len(own):,} {texts[len(own) > 1]}:")
            if listed:
                list_failures(own)


def list_failures(failures: Iterable[Any]) -> None:
    """Print the documents that could not be read to stderr."""
    lines = [f"  {inline(failure.document)}: {inline(failure.message)}" for failure in failures]
    for line in lines[:_SHOWN]:
        say(line)
    if len(lines) > _SHOWN:
        say(f"  ... and {len(lines) - _SHOWN} more (`ketrag stats --json` lists them all)")


def score_text(score: float) -> str:
    """Return a score with three decimals, and no minus sign before zero."""
    return f"{round(score, 3) + 0.0:.3f}"


def size_text(count: float) -> str:
    """Return a size in bytes as text, such as `1.2 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _json(data: Mapping[str, Any]) -> str:
    return in_json(json.dumps(data, ensure_ascii=False))


def time_text(seconds: float) -> str:
    """Return seconds as text: `2 h 05 min`, `41 s`, `0.8 s`."""
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _paint(text: str, colour: int) -> str:
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        return f"\033[1;{colour}m{text}\033[0m"
    return text


def copies_text(passage: Passage) -> str:
    """Return `also in ...`: the first documents with a copy of a passage, and how many more there are."""
    names = list(dict.fromkeys(copy.document for copy in passage.also_in))
    if not names:
        return ""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"also in {', '.join(names[:_NAMED])}{more}"
