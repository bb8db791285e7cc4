"""Detect the kind of a file, by its content if possible, else by its suffix.

Binary formats and web pages are recognised by their first bytes, whatever the file is called. Plain-text
formats look alike, so the suffix decides.
"""

from __future__ import annotations

import re
from typing import Final

from ketrag_fast._core import decode_text
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import mark_of, markless_utf16
from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.readers.repository import is_pointer, source_kind

HEAD: Final = 4096

BY_SUFFIX: Final = {
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"), "markdown"),
    ".rst": "rst",
    **dict.fromkeys((".adoc", ".asciidoc"), "asciidoc"),
    ".org": "org",
    ".tex": "tex",
    ".ipynb": "notebook",
    **dict.fromkeys((".srt", ".vtt"), "subtitles"),
    **dict.fromkeys((".ics", ".ical", ".ifb"), "calendar"),
    **dict.fromkeys((".vcf", ".vcard"), "contacts"),
    **dict.fromkeys((".rss", ".atom", ".enex"), "feed"),
    ".opml": "outline",
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
    ".xlsb": "xlsb",
    **dict.fromkeys((".odt", ".ott"), "odt"),
    **dict.fromkeys((".odp", ".otp"), "odp"),
    **dict.fromkeys((".ods", ".ots"), "ods"),
    ".epub": "epub",
    ".eml": "mail",
    ".msg": "outlook",
    ".tnef": "winmail",
    ".mbox": "mbox",
    **dict.fromkeys((".mht", ".mhtml"), "mht"),
    ".rtf": "rtf",
    ".json": "json",
    ".xml": "xml",
    ".gz": "gzip",
    ".zip": "zip",
    **dict.fromkeys((".xls", ".xlt"), "xls"),
    **dict.fromkeys((".doc", ".ppt"), "old office"),
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
"""Kinds by file suffix."""

LANGUAGES: Final = ("python", "javascript", "typescript", "tsx", "rust", "java", "go", "c", "cpp")
"""Languages whose functions and classes are recognised."""

IN_CONTENT: Final = frozenset(
    (
        *(
            "pdf",
            "docx",
            "pptx",
            "xlsx",
            "xlsb",
            "xls",
            "odt",
            "odp",
            "ods",
            "epub",
            "gzip",
            "zip",
            "html",
            "rtf",
        ),
        *("old office", "outlook", "winmail"),
    )
)
"""Kinds that are detected by content only: a suffix alone is not enough."""

_PACKAGES: Final = {
    "word/document.xml": "docx",
    "ppt/presentation.xml": "pptx",
    "xl/workbook.xml": "xlsx",
    "xl/workbook.bin": "xlsb",
}
_TYPES: Final = {
    b"application/epub+zip": "epub",
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.text-template": "odt",
    b"application/vnd.oasis.opendocument.presentation": "odp",
    b"application/vnd.oasis.opendocument.presentation-template": "odp",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
    b"application/vnd.oasis.opendocument.spreadsheet-template": "ods",
}
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_ROOTS: Final = {b"rss": "feed", b"RDF": "feed", b"feed": "feed", b"en-export": "feed", b"opml": "outline"}
_ROOT = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:(?><!--.*?-->|<!DOCTYPE[^>\[]*>)\s*+)*+<(?:\w+:)?([\w-]+)", re.S
)
"""The first element of XML."""
_MAIL = re.compile(rb"(?:[A-Za-z][A-Za-z-]{1,40}:[^\n]*\n(?:[ \t][^\n]*\n)*){3}")
_MAN = re.compile(rb"^\.(?:TH|Dd|Dt)[ \t]", re.M)
_MAN_SUFFIX = re.compile(r"\.[1-9][a-z]{0,8}")
_MESSAGE = re.compile(rb"[^\n]{0,8}\d{1,4}[./-]\d")
"""How a chat of WhatsApp begins: with a date."""
BINARY: Final = frozenset(
    (
        *(".exe", ".dll", ".so", ".o", ".bin", ".dat", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico"),
        *(".mp3", ".mp4", ".avi", ".mov", ".ogg", ".wav", ".woff", ".woff2", ".ttf", ".tar", ".7z", ".rar"),
    )
)
"""Suffixes of binary files that no reader reads."""
_NO_TEXT = BINARY | {".css", ".svg", ".map", ".lock", ".pem", ".key", ".crt", ".ps", ".eps"}
"""These, and suffixes of text files that are not prose, code or data."""
_PLAIN = frozenset(
    ("text", "markdown", "rst", "table", "jsonl", "json", "mail", "mbox", "mht", "xml", "code")
)


def kind_of(file: SourceFile) -> str | None:
    """Return the kind of a file, or None if it is unknown. Raises OSError, DocumentError.

    The text files of a Git repository are source, which is read as it is written.
    """
    head = file.head(HEAD)
    if is_pointer(head):
        if file.suffix not in BY_SUFFIX:  # a picture, for example, which no reader reads either
            return None
        raise DocumentError("a Git LFS pointer, not the file itself; `git lfs pull` fetches the file")
    found = _plain_kind(file, head)
    if found == "jsonl":
        from ketrag_fast.readers.sessions import is_session

        if is_session(head):
            return "session"
    if found == "text" and file.suffix == ".txt" and _MESSAGE.match(head):
        from ketrag_fast.readers.chats import is_whatsapp

        if is_whatsapp(head):
            return "chat"
    if found == "text" and file.suffix == ".weechatlog":
        return "irc"
    if found == "text" and file.suffix in (".txt", ".log") and b"> " in head:
        from ketrag_fast.readers.irc import is_irc

        if is_irc(head):
            return "irc"
    if file.data is not None or file.alone:
        return found
    return source_kind(
        file.path,
        found,
        head,
        is_text=found is None and bool(head.strip()) and _is_text(head),
        in_repository=file.in_repository,
    )


def _plain_kind(file: SourceFile, head: bytes) -> str | None:
    named = BY_SUFFIX.get(file.suffix)
    found = _content_kind(file, head, named)
    if found is not None:
        return found
    if named is None and head.strip():
        if _MAN_SUFFIX.fullmatch(file.suffix) and _MAN.search(head):
            return "man"
        return "text" if file.suffix not in _NO_TEXT and _is_text(head) else None
    if named in IN_CONTENT and head.strip():
        # The suffix promises a binary format, but the content is text: read it as text.
        return "html" if named == "html" else _text_kind(head, named)
    return named


def _text_kind(head: bytes, named: str | None) -> str | None:
    if mark_of(head)[1] is None and markless_utf16(head) is not None:
        return "text"
    if mark_of(head)[1] is None and b"\0" in head:
        return named  # its reader reports what is wrong
    text = not any(byte < 7 or 13 < byte < 27 for byte in head)
    return "text" if text else named


def _is_text(head: bytes) -> bool:
    """Return whether the beginning of a file is text, in any encoding.

    Logs of terminals have bells, backspaces and escapes; other control characters are those of binary files.
    """
    if mark_of(head)[1] is not None or markless_utf16(head) is not None:
        return True
    if any(byte < 7 or 13 < byte < 27 or byte == 127 for byte in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start > len(head) - 4 and len(head) >= HEAD:
            return True  # `head` may end within a character
        # The last line of a whole head may end within a character.
        _, _, is_sure, _ = decode_text(head if len(head) < HEAD else head.rpartition(b"\n")[0] or head)
        return is_sure
    return True


def _content_kind(file: SourceFile, head: bytes, named: str | None) -> str | None:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # before PDF: a member may be one
        return _package(file, named)
    if (b"%PDF-" in head[:1024] and named not in _PLAIN) or head.startswith(b"%PDF"):
        return "pdf"
    if head.startswith(b"{\\rtf") and named not in _PLAIN - {"text"}:
        return "rtf"
    if head.startswith(b"\x1f\x8b"):
        return "gzip" if file.suffix == ".gz" or named is not None else None
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return named if named in ("xls", "outlook") else "old office" if named is not None else None
    if head.startswith(b"\x78\x9f\x3e\x22"):
        return "winmail"
    start = head[mark_of(head)[0] :]
    if named in (None, "xml", "html", *(IN_CONTENT - {"html"})) and _HTML.match(start.replace(b"\0", b"")):
        return "html"
    if named in ("xml", "feed", "outline") and (root := _ROOT.match(start.replace(b"\0", b""))):
        return _ROOTS.get(root[1], "xml" if named == "xml" else None)
    if named in ("mail", "text", None) and start.startswith(b"From ") and _MAIL.search(start):
        return "mbox"
    return None


def _package(file: SourceFile, named: str | None) -> str | None:
    """Return the kind of a zip archive: an Office document, a book or an archive of files."""
    import zipfile  # imported here because few files are archives

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
        raise DocumentError(f"damaged archive: {error}") from None
    except Exception as error:  # noqa: BLE001 - zlib and struct raise theirs
        raise DocumentError(f"damaged archive: {error}") from None
    for name, kind in _PACKAGES.items():
        if name in names:
            return kind
    return "zip" if named is not None else None
