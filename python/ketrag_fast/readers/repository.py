"""Git repositories: which files are source, where the ignore files are, and what Git stores elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Final

from ketrag_fast.base.open_beneath import open_regular

GIT: Final = ".git"
_LONGEST: Final = 4096
"""Maximum number of bytes read from a `.git` file or a `commondir`."""
_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_AS_WRITTEN: Final = frozenset(
    (
        *("html", "json", "xml", "table", "subtitles", "man", "feed", "outline", "calendar", "contacts"),
        *("mail", "mbox"),
    )
)
"""Kinds whose readers do not keep the text as it is written, while people can read it as it is written."""
_ENCODED: Final = re.compile(rb"^content-transfer-encoding:[ \t]*(?:quoted-printable|base64)", re.I | re.M)
"""Mail whose text is encoded: nobody could read or search it as it is written."""
KEYS: Final = frozenset((".pem", ".key", ".crt"))
"""Suffixes of keys and certificates, which are neither indexed nor searched."""
_NO_SOURCE: Final = frozenset((*KEYS, ".ps", ".eps"))
"""Suffixes of text files that are not source: keys, certificates and printed pages."""
_PROSE: Final = re.compile(
    r"(?:readme|licen[cs]e|copying|notice|authors|contributors|contributing|maintainers|changelog|changes|history"
    r"|news|todo|install|patents|security)(?:[-.][\w-]+)?",
    re.I,
)
"""Names of files without a suffix that are prose."""
_DATA_SET: Final = re.compile(rb'[^\n]*"text"[ \t]*:')
"""JSON lines that are documents: the first one has a text."""
_TEMPLATE: Final = re.compile(
    rb"\{%-?\s*(?:extends|block|include|load|if|for|macro|import|from|set|with)\b|<\?php\b|<%[@=!-]?\s"
)


def top_of(folder: str) -> str | None:
    """Return the top folder of the repository that a folder is in; None outside of repositories."""
    here = os.path.abspath(folder)  # noqa: PTH100 - links stay
    while not os.path.lexists(os.path.join(here, GIT)):  # noqa: PTH118 - it runs for every file
        above = os.path.dirname(here)  # noqa: PTH120
        if above == here:
            return None
        here = above
    return here


def source_kind(
    path: Path, kind: str | None, head: bytes, *, is_text: bool, in_repository: bool | None = None
) -> str | None:
    """Return the kind of a file on disk: "source" for templates and for the text files of a repository.

    `kind` is its kind elsewhere, and `is_text` whether an unknown file begins as text does. Whether it is in
    a repository is looked up unless the caller knows it.
    """
    if kind == "html" and _TEMPLATE.search(head):
        return "source"
    is_lines = kind == "jsonl" and _DATA_SET.match(head) is None
    if kind not in (None, "text", "markdown", *_AS_WRITTEN) and not is_lines:
        return kind
    if kind in ("mail", "mbox") and _ENCODED.search(head):
        return kind
    if not (top_of(str(path.parent)) is not None if in_repository is None else in_repository):
        return kind
    if kind == "markdown":
        return "source markdown"
    if is_lines or kind in _AS_WRITTEN:
        return "source"
    suffix = PurePosixPath(path.name).suffix.lower()
    if kind is None:
        return "source" if is_text and suffix not in _NO_SOURCE else None
    return kind if suffix in (".txt", ".text") or _PROSE.fullmatch(path.name) else "source"


def is_pointer(head: bytes) -> bool:
    """Return whether a file is a pointer to a file in Git's large file storage."""
    return head.startswith(_POINTER)


def exclude_file(top: Path) -> Path:
    """Return the file of a repository with ignore patterns that are not shared, which may not exist."""
    folder = top / GIT
    if folder.is_file():  # a worktree or a submodule: the file names the folder
        folder = top / _line_of(folder).removeprefix("gitdir:").strip()
        if common := _line_of(folder / "commondir"):
            folder /= common
    return folder / "info" / "exclude"


def _line_of(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(_LONGEST).decode("utf-8", "surrogateescape").partition("\n")[0].strip()
    except OSError:
        return ""
