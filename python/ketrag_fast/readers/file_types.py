"""Of what kind a file is: by its content where that can be told, else by the end of its name.

Binary formats and web pages are known by their first bytes, whatever a file is called. What is plain text
looks the same in all of its formats: there the name decides.
"""

from __future__ import annotations

import re
import zipfile
from typing import Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import mark_of
from ketrag_fast.readers.protocol import SourceFile

HEAD: Final = 4096

BY_SUFFIX: Final = {
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    ".rst": "rst",
    **dict.fromkeys((".csv", ".tsv"), "table"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
    ".docm": "docx",
    ".pptx": "pptx",
    ".pptm": "pptx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".odt": "odt",
    ".epub": "epub",
    ".eml": "mail",
    ".mbox": "mbox",
    ".json": "json",
    ".xml": "xml",
    ".gz": "gzip",
    ".zip": "zip",
    **dict.fromkeys((".doc", ".xls", ".ppt"), "old office"),
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    ".ts": "typescript",
    ".tsx": "tsx",
    ".rs": "rust",
    ".java": "java",
    ".go": "go",
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp"), "cpp"),
    **dict.fromkeys((".sh", ".bash", ".rb", ".php", ".cs", ".kt", ".swift", ".scala", ".sql"), "code"),
}
"""What the end of a name says."""

LANGUAGES: Final = ("python", "javascript", "typescript", "tsx", "rust", "java", "go", "c", "cpp")
"""Of source code, those whose functions and classes are known."""

IN_CONTENT: Final = frozenset(
    ("pdf", "docx", "pptx", "xlsx", "odt", "epub", "gzip", "zip", "html", "old office")
)
"""Kinds that are known by their content: a name alone does not make a file one of these."""

_PACKAGES: Final = {
    "word/document.xml": "docx",
    "ppt/presentation.xml": "pptx",
    "xl/workbook.xml": "xlsx",
}
_TYPES: Final = {
    b"application/epub+zip": "epub",
    b"application/vnd.oasis.opendocument.text": "odt",
}
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_MAIL = re.compile(rb"(?:[A-Za-z][A-Za-z-]{1,40}:[^\n]*\n(?:[ \t][^\n]*\n)*){3}")
_PLAIN = frozenset(("text", "markdown", "rst", "table", "jsonl", "json", "mail", "mbox", "xml", "code"))


def kind_of(file: SourceFile) -> str | None:
    """The kind of a file; None where no reader knows it. Raises OSError, DocumentError."""
    named = BY_SUFFIX.get(file.suffix)
    head = file.head(HEAD)
    found = _content_kind(file, head, named)
    if found is not None:
        return found
    if named in IN_CONTENT and head.strip():
        # A name that promises another format: what is text after all is read as such.
        return "html" if named == "html" else _text_kind(head, named)
    return named


def _text_kind(head: bytes, named: str | None) -> str | None:
    if mark_of(head)[1] is None and b"\0" in head:
        return named  # its reader says what is wrong with it
    text = not any(byte < 9 or 13 < byte < 27 for byte in head)
    return "text" if text else named


def _content_kind(file: SourceFile, head: bytes, named: str | None) -> str | None:
    if (b"%PDF-" in head[:1024] and named not in _PLAIN) or head.startswith(b"%PDF"):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _package(file, named)
    if head.startswith(b"\x1f\x8b"):
        return "gzip" if file.suffix == ".gz" or named is not None else None
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "old office" if named is not None else None
    start = head[mark_of(head)[0] :]
    if named in (None, "xml", "html", *(IN_CONTENT - {"html"})) and _HTML.match(start.replace(b"\0", b"")):
        return "html"
    if named in ("mail", "text", None) and start.startswith(b"From ") and _MAIL.search(start):
        return "mbox"
    return None


def _package(file: SourceFile, named: str | None) -> str | None:
    """A document in a zip archive, or an archive of others."""
    try:
        with file.open() as stream, zipfile.ZipFile(stream) as archive:
            names = set(archive.namelist())
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                found = _TYPES.get(archive.read("mimetype").strip())
                if found is not None:
                    return found
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        if named is None:
            return None
        raise DocumentError(f"a damaged archive: {error}") from None
    except Exception as error:  # noqa: BLE001 - zlib and struct raise theirs
        raise DocumentError(f"a damaged archive: {error}") from None
    for name, kind in _PACKAGES.items():
        if name in names:
            return kind
    return "zip" if named is not None else None
