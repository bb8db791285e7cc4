"""Recognise generated files that nobody reads: minified scripts, lock files, generated code.

Prose and data (JSON, JSON lines, tables) never count as generated.
"""

from __future__ import annotations

import re
from typing import Final

from ketrag_fast.readers.file_types import LANGUAGES
from ketrag_fast.readers.protocol import SourceFile

_CODE: Final = frozenset((*LANGUAGES, "code"))
_SCRIPTS: Final = frozenset(("javascript", "typescript", "tsx"))
_MINIFIED: Final = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html?)", re.I)
_LOCKS: Final = frozenset(
    (
        *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "go.sum"),
        *("gradle.lockfile", "package.resolved", "deno.lock", "uv.lock"),
    )
)
_HEAD: Final = 1 << 16
"""Number of bytes at the beginning of a file that are examined."""
_SMALL: Final = 1_000
"""A script with fewer bytes is never minified."""
_LONG: Final = 500
"""Minimum average line length of a minified script, in bytes."""
_FIRST_LINES: Final = 20
_COMMENT: Final = re.compile(rb"\s*(?:#|//|/\*|\*|--|;|<!--|\"\"\")")
_GENERATED: Final = re.compile(
    rb"@generated\b|<auto-?generated|\bgenerated\b.*\n?.*\bdo not (?:edit|modify|change)\b"
    rb"|\bdo not (?:edit|modify|change)\b.*\n?.*\bgenerated\b",
    re.I,
)
_ONLY_MARK: Final = re.compile(
    rb"\W*do not (?:edit|modify)(?: this file)?(?: (?:by hand|manually))?\W*", re.I
)


def reason(file: SourceFile, kind: str) -> str | None:
    """Return why a file of a kind is generated; None if it is not. Raises OSError."""
    name = file.id.rpartition("/")[2].lower()
    if name in _LOCKS:
        return "a lock file"
    if _MINIFIED.search(name):
        return "minified, by its name"
    if kind not in _CODE:
        return None
    head = file.head(_HEAD)
    if kind in _SCRIPTS and len(head) >= _SMALL:
        length = len(head) // (head.count(b"\n") + 1)
        if length > _LONG:
            return f"minified: its lines have {length:,} bytes on average"
    if _is_marked(head):
        return "generated, by its first lines"
    return None


def _is_marked(head: bytes) -> bool:
    """Return whether the comments in the first lines of code report that a program wrote it."""
    lines = head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]
    comments = [line[:_LONG] for line in lines if _COMMENT.match(line)]
    return any(map(_ONLY_MARK.fullmatch, comments)) or bool(_GENERATED.search(b"\n".join(comments)))
