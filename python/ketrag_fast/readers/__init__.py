"""Readers: a file becomes documents. `reader_of` is the registry; a new format is one more row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, NamedTuple

from ketrag_fast.errors import DocumentError, KetragError
from ketrag_fast.readers.file_types import BY_SUFFIX, LANGUAGES, kind_of
from ketrag_fast.readers.files import SourceFiles, find, is_glob
from ketrag_fast.readers.protocol import Item, Reader, SourceFile
from ketrag_fast.readers.text_limit import READ_TEXT, within

_HERE = __name__
_SMALL: Final = 1_000_000
_SMALL_TABLE: Final = 10_000
"""A row of one cell is given all columns of the header, so that time grows with the product of both."""


class Format(NamedTuple):
    """A reader as "module:function", loaded when a file needs it.

    Files are read in a process of their own, which may be slow, greedy or die. Files of at most `inside`
    bytes are read in the process of the caller: plain text, whose readers take time and memory in proportion
    to its size. `alike`: its records are independent, so that the limit of time counts for each of them.
    """

    reader: str
    inside: int = 0
    alike: bool = False

    def apart(self, file: SourceFile) -> bool:
        """Whether a file is read in a process of its own."""
        try:
            return not self.inside or file.size() > self.inside
        except OSError:
            return False  # reading it gives the failure


FORMATS: Final[Mapping[str, Format]] = {
    "text": Format("plain_text:read_plain", _SMALL),
    "markdown": Format("plain_text:read_markdown", _SMALL),
    "rst": Format("plain_text:read_rst", _SMALL),
    "table": Format("table:read_table", _SMALL_TABLE),
    "jsonl": Format("jsonl:read_jsonl", _SMALL, alike=True),
    "html": Format("html:read_html"),
    "pdf": Format("pdf.reader:read_pdf"),
    "docx": Format("office.word:read_docx"),
    "pptx": Format("office.slides:read_pptx"),
    "xlsx": Format("office.sheets:read_xlsx"),
    "odt": Format("office.odt:read_odt"),
    "epub": Format("office.epub:read_epub"),
    "mail": Format("mail:read_mail"),
    "mbox": Format("mail:read_mbox"),
    "json": Format("structured:read_json"),
    "xml": Format("structured:read_xml"),
    "gzip": Format("archives:read_gzip"),
    "zip": Format("archives:read_zip"),
    "old office": Format("legacy_office:read_old"),
    **dict.fromkeys((*LANGUAGES, "code"), Format("code:read_code")),
}
"""By the kinds of `kinds.py`."""

ALONE: Final = frozenset(
    (*LANGUAGES, "code", "text", "markdown", "rst", "html", "pdf", "docx", "pptx", "odt", "epub")
)
"""Kinds of files that are one document each, under the file's own id."""


def reader_of(kind: str) -> Reader:
    """The reader of a kind. Raises DocumentError where there is none."""
    found = FORMATS.get(kind)
    if found is None:
        raise DocumentError(f"no reader for {kind} files")
    module, _, function = found.reader.partition(":")
    reader: Reader = getattr(import_module(f"{_HERE}.{module}"), function)
    return reader


def reader_for(suffix: str) -> Reader | None:
    """The reader of files whose names end so (`.txt`), in any case; None if there is none."""
    kind = BY_SUFFIX.get(suffix.lower())
    return reader_of(kind) if kind is not None and kind in FORMATS else None


def known_kind(file: SourceFile) -> str | None:
    """The kind of a file, if there is a reader for it. Raises OSError, DocumentError."""
    kind = kind_of(file)
    return kind if kind in FORMATS else None


def items_of(
    file: SourceFile, kind: str, largest: int | None = None, read_text: int = READ_TEXT
) -> Iterator[Item]:
    """What a reader makes of a file. One bad file never ends a build: what its reader raises becomes a
    failure of that file, and so does its being written while it is read, or giving more than `read_text`
    million characters.
    """
    try:
        before = _stamp(file)
        if largest is not None and file.size() > largest and kind != "jsonl":
            yield file.failure(f"the file is larger than {largest:,} bytes")
            return
        yield from within(file, reader_of(kind)(file), read_text)
        if _stamp(file) != before:
            yield file.failure("it changed while it was read: index again when nobody writes it")
    except DocumentError as error:
        yield file.failure(str(error) if error.hint is None else f"{error} ({error.hint})")
    except MemoryError:
        yield file.failure("too large for this machine's memory")
    except KetragError as error:
        yield file.failure(str(error) if error.hint is None else f"{error} ({error.hint})")
    except OSError as error:
        yield file.failure(f"cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        yield file.failure(f"cannot be used: {error}")


def _stamp(file: SourceFile) -> tuple[int, int]:
    if file.data is not None:
        return 0, 0
    status = file.path.stat()
    return status.st_mtime_ns, status.st_size


__all__ = [
    "FORMATS",
    "Format",
    "Item",
    "Reader",
    "SourceFile",
    "SourceFiles",
    "find",
    "is_glob",
    "items_of",
    "known_kind",
    "reader_for",
    "reader_of",
]
