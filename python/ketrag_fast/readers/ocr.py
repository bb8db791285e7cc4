"""Text of pictures, recognised by Tesseract's command, which is not part of the package."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from os import environ
from typing import Final

from ketrag_fast.errors import BackendMissing, ConfigError, DocumentError
from ketrag_fast.records import dataclass

COMMAND: Final = "tesseract"
_LANGUAGES: Final = re.compile(r"[A-Za-z][A-Za-z0-9_/-]{1,40}(?:\+[A-Za-z][A-Za-z0-9_/-]{1,40})*")
_SECONDS: Final = 600
_LEAST_SURE: Final = 20.0
"""Minimum confidence of Tesseract in percent; words below it are usually marks in the picture."""


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A word with its box in pixels; `line` is the same for the words of one line."""

    line: tuple[int, int, int]
    left: float
    top: float
    right: float
    bottom: float
    text: str


def check_ocr(languages: str | None) -> str:
    """Return the version of Tesseract, or "" if no text is to be recognised.

    Raises BackendMissing if the command is missing, ConfigError if it has no data for a language.
    """
    if languages is None:
        return ""
    if _LANGUAGES.fullmatch(languages) is None:
        raise ConfigError(f"ocr: {languages!r} is not a list of languages", hint="for example eng or eng+deu")
    version, known = _installed(shutil.which(COMMAND))
    missing = [name for name in languages.split("+") if name not in known]
    if missing:
        raise ConfigError(
            f"ocr: Tesseract has no data for {', '.join(missing)}",
            hint=f"apt-get install tesseract-ocr-{missing[0]}; `tesseract --list-langs` lists those it has",
        )
    return version


@cache
def _installed(path: str | None) -> tuple[str, frozenset[str]]:
    """Return version and languages of the command."""
    if path is None:
        raise BackendMissing(
            "the command tesseract is missing, which the setting ocr needs",
            hint="install Tesseract (apt-get install tesseract-ocr), or leave ocr out",
        )
    version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    listed = subprocess.run([path, "--list-langs"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    lines = (version.stdout or version.stderr).splitlines()
    return lines[0] if lines else "unknown", frozenset(listed.stdout.split("\n")[1:])


def recognise(picture: bytes, languages: str, dots: int) -> list[RecognisedWord]:
    """Return the words of a picture (PGM) of `dots` per inch. Raises DocumentError if Tesseract fails."""
    check_ocr(languages)
    command = [
        shutil.which(COMMAND) or COMMAND,
        "stdin",
        "stdout",
        "-l",
        languages,
        "--dpi",
        str(dots),
        "tsv",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - the languages are checked
            command,
            input=picture,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={**environ, "OMP_THREAD_LIMIT": "1"},
        )
    except subprocess.TimeoutExpired:
        raise DocumentError(f"Tesseract took longer than {_SECONDS} seconds for a page") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise DocumentError(f"Tesseract failed: {reason[-1][:200] if reason else done.returncode}")
    return list(_words(done.stdout.decode("utf-8", "replace")))


def _words(table: str) -> list[RecognisedWord]:
    found = []
    for row in table.split("\n")[1:]:
        cells = row.split("\t")
        if len(cells) != 12 or cells[0] != "5" or not cells[11].strip() or float(cells[10]) < _LEAST_SURE:
            continue
        left, top, width, height = map(int, cells[6:10])
        line = int(cells[2]), int(cells[3]), int(cells[4])
        found.append(RecognisedWord(line, left, top, left + width, top + height, cells[11].strip()))
    return found
