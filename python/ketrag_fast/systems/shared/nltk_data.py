"""NLTK's data in the user's own folder: Punkt's learnt parameters and the English stop words.

They carry no licence that would let this package ship them, so the words of the published KET-RAG code
(`words = published`) are had only where NLTK's data are on the machine. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ketrag_fast.errors import BackendMissing, InputError
from ketrag_fast.kernels.published import FILES, PublishedTokenizer

PUNKT = Path("tokenizers", "punkt_tab", "english")
STOP_WORDS = Path("corpora", "stopwords", "english")
_HINT = (
    "`python -m nltk.downloader punkt_tab stopwords` installs them; -o nltk_data=FOLDER or $NLTK_DATA "
    "names another folder"
)


@dataclass(frozen=True, slots=True)
class NltkData:
    """What the published profiles need. `digest` stands for the content of all files."""

    tokenizer: PublishedTokenizer
    stop_words: tuple[str, ...]
    digest: str


def find(given: str | None) -> Path:
    """The folder: the one given, or the first of NLTK's usual places that holds all files.

    Raises BackendMissing naming the files that are not there.
    """
    if given is not None:
        folder = Path(given).expanduser()
        lacking = _lacking(folder)
        if lacking:
            raise BackendMissing(f"{folder} lacks {', '.join(lacking)} of NLTK's data", hint=_HINT)
        return folder
    for folder in _places():
        if not _lacking(folder):
            return folder
    raise BackendMissing(
        "words = published needs NLTK's punkt_tab and stopwords (English), which were found in none of its "
        "usual places",
        hint=_HINT,
    )


def digest(given: str | None) -> str:
    """A hash of the files' content, without reading them into a tokenizer."""
    folder = find(given)
    found = hashlib.sha256()
    for file in _files(folder):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def load(given: str | None) -> NltkData:
    """Reads the data. Raises BackendMissing where they are not there, InputError where they are broken."""
    folder = find(given)
    path = folder / STOP_WORDS
    try:
        words = path.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    return NltkData(PublishedTokenizer.from_folder(folder / PUNKT), tuple(words), digest(given))


def _files(folder: Path) -> list[Path]:
    return [*(folder / PUNKT / name for name in FILES), folder / STOP_WORDS]


def _lacking(folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in _files(folder) if not file.is_file()]


def _places() -> list[Path]:
    """Where NLTK itself looks."""
    named = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    prefix = Path(sys.prefix)
    usual = [Path.home(), prefix, prefix / "share", prefix / "lib"]
    system = ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    return [*named, *(place / "nltk_data" for place in [*usual, *map(Path, system)])]
