"""NLTK data installed by the user: parameters of Punkt, and English stop words.

Their licence does not let this package ship them, so the tokenisation of the reference implementation of
KET-RAG (`ket-rag:reference`) needs NLTK's data on the machine. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ketrag_fast import _core
from ketrag_fast.errors import BackendMissing, InputError

PUNKT = Path("tokenizers", "punkt_tab", "english")
PUNKT_FILES = ("abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab")
STOP_WORDS = Path("corpora", "stopwords", "english")
_HINT = (
    "`python -m nltk.downloader punkt_tab stopwords` installs them; -o nltk_data=FOLDER or $NLTK_DATA "
    "names another folder"
)


@dataclass(frozen=True, slots=True)
class NltkData:
    """The tokenizer (parameters of a `punkt_tab` model) and stop words. `digest` hashes all files."""

    tokenizer: _core.Punkt
    stop_words: tuple[str, ...]
    digest: str


def find(given: str | None) -> Path:
    """Return the given folder, or the first of NLTK's usual folders that has all files.

    Raises BackendMissing with the names of missing files.
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
        "ket-rag:reference needs NLTK's punkt_tab and stopwords (English), which are in none of its usual "
        "folders",
        hint=_HINT,
    )


def digest(given: str | None) -> str:
    """Return a hash of the content of the files."""
    folder = find(given)
    state = hashlib.sha256()
    for file in _files(folder):
        state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


def load(given: str | None) -> NltkData:
    """Load the data. Raises BackendMissing if files are missing, InputError if they are invalid."""
    folder = find(given)
    *parameters, words = map(_read, _files(folder))
    return NltkData(_core.Punkt(*parameters), tuple(words.split()), digest(given))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def _files(folder: Path) -> list[Path]:
    return [*(folder / PUNKT / name for name in PUNKT_FILES), folder / STOP_WORDS]


def _lacking(folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in _files(folder) if not file.is_file()]


def _places() -> list[Path]:
    """Return the folders that NLTK searches."""
    named = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    prefix = Path(sys.prefix)
    usual = [Path.home(), prefix, prefix / "share", prefix / "lib"]
    system = ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    return [*named, *(place / "nltk_data" for place in [*usual, *map(Path, system)])]
