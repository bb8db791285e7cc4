"""Readers turn files into documents. `FORMATS` is the registry; a new format is one more row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from ketrag_fast.base.globs import is_glob
from ketrag_fast.base.hashes import blake2b
from ketrag_fast.base.installed import installed_version
from ketrag_fast.errors import DocumentError, KetragError
from ketrag_fast.readers.file_types import BY_SUFFIX, LANGUAGES, kind_of
from ketrag_fast.readers.files import SourceFiles, find
from ketrag_fast.readers.many_places import MOST, with_fewer_places
from ketrag_fast.readers.protocol import MOST_LINES, RATIO, UNPACKED, Item, Items, Reader, SourceFile
from ketrag_fast.records import replace
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import ENCODING, DocumentBatch
from ketrag_fast.types.locations import Locator

MILLION: Final = 1_000_000
READ_TEXT: Final = 200
"""Default of the setting read_text, in millions of characters."""
_TIMES: Final = 4
"""A file larger than a quarter of the limit may give this many characters per byte."""
_ENTRY: Final = 16
"""Characters counted for a number, a name or a locator, in addition to its texts."""
_HERE = __name__
_I = TypeVar("_I", Item, Items)
_SMALL: Final = 100_000
"""Bytes of a text that is read in the caller's process: a process costs 0.3 s, and no text of this size takes
longer than that to read."""
_NO_MEMORY: Final = "the file is too large for the memory of this machine"


class Format(NamedTuple):
    """A reader as "module:function", loaded when a file needs it.

    Files are read in a separate process, so that a slow or crashing parser does no harm. Files of at most
    `inside` bytes are read in the caller's process: plain text, whose readers take time and memory in
    proportion to its size. With `alike`, records are lines that are independent: the time limit applies to
    each, and a file of any size whose lines have at most `inside` bytes is read in the caller's process.
    `fallback` is the kind as which a file is read again if its reader exceeds a limit or crashes, and `lost`
    what its text lacks then. `batches` is a reader that yields the same documents, many at a time.
    """

    reader: str
    inside: int = 0
    alike: bool = False
    fallback: str | None = None
    lost: str = ""
    batches: str = ""

    def apart(self, file: SourceFile) -> bool:
        """Whether a file is read in a separate process."""
        try:
            if not self.inside or file.size() <= self.inside:
                return not self.inside
            if not self.alike:
                return True
            from ketrag_fast.readers.jsonl import has_short_lines

            return not has_short_lines(file, self.inside)
        except OSError:
            return False  # reading it reports the failure


FORMATS: Final[Mapping[str, Format]] = {
    "text": Format("plain_text:read_plain", _SMALL),
    "markdown": Format("plain_text:read_markdown", _SMALL),
    "rst": Format("plain_text:read_rst", _SMALL),
    "asciidoc": Format("markup:read_asciidoc", _SMALL),
    "org": Format("markup:read_org", _SMALL),
    "tex": Format("markup:read_tex", _SMALL),
    "man": Format("man:read_man"),
    "notebook": Format("structured:read_notebook"),
    "subtitles": Format("subtitles:read_subtitles"),
    "calendar": Format("content_lines:read_calendar", _SMALL),
    "contacts": Format("content_lines:read_contacts", _SMALL),
    "feed": Format("feeds:read_feed"),
    "outline": Format("feeds:read_outline"),
    "table": Format("table:read_table", _SMALL),
    "jsonl": Format("jsonl:read_jsonl", _SMALL, alike=True, batches="jsonl:read_jsonl_batches"),
    "session": Format("sessions:read_session"),
    "chat": Format("chats:read_whatsapp"),
    "irc": Format("irc:read_irc"),
    "html": Format("html:read_html", fallback="plain html", lost="headings, links and tables"),
    "plain html": Format("html:read_html_plain"),
    "pdf": Format("pdf.reader:read_pdf"),
    "docx": Format("office.word:read_docx"),
    "pptx": Format("office.slides:read_pptx"),
    "xlsx": Format("office.sheets:read_xlsx"),
    "xls": Format("office.old_sheets:read_xls"),
    "xlsb": Format("office.binary_sheets:read_xlsb"),
    "odt": Format("office.opendocument:read_odt"),
    "odp": Format("office.opendocument:read_odp"),
    "ods": Format("office.opendocument_sheets:read_ods"),
    "epub": Format("office.epub:read_epub"),
    "mail": Format("mail:read_mail"),
    "mbox": Format("mail:read_mbox"),
    "outlook": Format("outlook:read_msg"),
    "winmail": Format("outlook:read_winmail"),
    "mht": Format("mht:read_mht"),
    "rtf": Format("rtf:read_rtf"),
    "json": Format("structured:read_json"),
    "xml": Format("structured:read_xml"),
    "gzip": Format("archives:read_gzip"),
    "zip": Format("archives:read_zip"),
    "old office": Format("office.word:read_old"),
    **dict.fromkeys(
        (*LANGUAGES, "code"),
        Format("code:read_code", fallback="plain code", lost="functions and classes"),
    ),
    "plain code": Format("code:read_plain_code"),
    "source": Format("code:read_plain_code", _SMALL),
    "source markdown": Format("plain_text:read_whole_markdown", _SMALL),
}
"""Formats by the kinds of `file_types.py`."""

ALONE: Final = frozenset(
    (
        *LANGUAGES,
        "code",
        "source",
        "text",
        "markdown",
        "source markdown",
        "rst",
        "asciidoc",
        "org",
        "tex",
        "man",
        "notebook",
        "subtitles",
        "session",
        "chat",
        "irc",
        "outline",
        "html",
        "pdf",
        "odt",
        "odp",
        "epub",
        "mht",
        "rtf",
    )
)
"""Kinds of files that become one document each, with the id of the file."""


def reader_of(kind: str) -> Reader:
    """Return the reader of a kind. Raises DocumentError for an unknown kind."""
    found = FORMATS.get(kind)
    if found is None:
        raise DocumentError(f"no reader for {kind} files")
    reader: Reader = _load(found.reader)
    return reader


def _load(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(f"{_HERE}.{module}"), function)


def reader_for(suffix: str) -> Reader | None:
    """Return the reader for a file suffix (`.txt`), ignoring case, or None."""
    kind = BY_SUFFIX.get(suffix.lower())
    return reader_of(kind) if kind is not None and kind in FORMATS else None


def known_kind(file: SourceFile) -> str | None:
    """Return the kind of a file if there is a reader for it. Raises OSError, DocumentError."""
    kind = kind_of(file)
    return kind if kind in FORMATS else None


def items_of(
    file: SourceFile,
    kind: str,
    largest: int | None = None,
    read_text: int = READ_TEXT,
    *,
    no_memory: str = _NO_MEMORY,
) -> Iterator[Item]:
    """Yield the documents and failures of a file. A bad file never ends a build.

    Exceptions of its reader become a failure of the file, and so do a change of the file while it is read and
    more than `read_text` million characters of text. After a document they are failures of a part. A failure
    for lack of memory has the message `no_memory`.
    """
    return mark_partial(
        file, single(_with_few_lines(file, _items_of(file, kind, largest, read_text, no_memory)))
    )


def batches_of(
    file: SourceFile, kind: str, largest: int | None = None, read_text: int = READ_TEXT
) -> Iterator[Items]:
    """Yield the same items, documents that are next to each other in batches."""
    items = _items_of(file, kind, largest, read_text, _NO_MEMORY)
    if kind in ALONE:
        return mark_partial(file, _with_few_lines(file, items))
    from ketrag_fast.readers.batches import in_batches

    return in_batches(mark_partial(file, _with_few_lines(file, items)))


def _with_few_lines(file: SourceFile, items: Iterable[Items]) -> Iterator[Items]:
    """Yield the items of a file, but only the first failures of its lines and rows, and how many follow."""
    lines, more = f"{file.id}:", 0
    for item in items:
        if isinstance(item, Failure) and item.document.startswith(lines):
            more += 1
            if more > MOST_LINES:
                continue
        yield item
    if more > MOST_LINES:
        yield file.partial(f"{more - MOST_LINES:,} further lines or rows cannot be read")


def single(items: Iterable[Items]) -> Iterator[Item]:
    """Yield the documents of batches one by one."""
    for item in items:
        if isinstance(item, DocumentBatch):
            yield from item.documents()
        else:
            yield item


def _items_of(
    file: SourceFile, kind: str, largest: int | None, read_text: int, no_memory: str
) -> Iterator[Items]:
    if not file.depth:
        file.unpacked.size = 0  # it may have been read before
    try:
        before = _stamp(file)
        if largest is not None and file.size() > largest and kind != "jsonl":
            yield file.failure(f"the file is larger than {largest:,} bytes")
            return
        found = FORMATS.get(kind)
        read = _load(found.batches) if found is not None and found.batches else reader_of(kind)
        for item in with_encoding(file, within(file, read(file), read_text)):
            lacks = None
            if isinstance(item, Document) and len(item.locators) > MOST:
                item, lacks = with_fewer_places(item)
            yield item
            if lacks is not None:
                yield file.partial(lacks)
        if _stamp(file) != before:
            yield file.failure("the file changed while it was read: index it again when nothing writes to it")
    except DocumentError as error:
        yield file.failure(str(error) if error.hint is None else f"{error} ({error.hint})")
    except MemoryError:
        yield file.failure(no_memory)
    except KetragError as error:
        yield file.failure(str(error) if error.hint is None else f"{error} ({error.hint})")
    except OSError as error:
        yield file.failure(f"cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        yield file.failure(f"cannot be used: {error}")


def within(file: SourceFile, items: Iterable[Items], millions: int) -> Iterator[Items]:
    """Yield the items of a file until they exceed a limit; then yield a Failure and stop.

    The limit for text, metadata and locators is `millions` of characters or 4 times the file size, whichever
    is larger. A small file may give 100 characters for each byte: more are repetitions, of a shared text of a
    sheet or of the names of columns.
    """
    size = file.size()
    limit = max(millions * MILLION, _TIMES * size)
    if limit > (most := max(UNPACKED, RATIO * size)):
        limit, why = most, f"{RATIO} for each byte"
    else:
        why = f"setting read_text: {millions:,} million, or {_TIMES} times the file size"
    produced = 0
    for item in items:
        for one in _fitting(item, limit - produced):
            produced += characters_of(one)
            if produced > limit:
                yield file.failure(
                    f"the file gives more than {limit:,} characters ({why}); the text before that is kept"
                )
                return
            yield one


def _fitting(item: Items, left: int) -> Iterable[Items]:
    """Return the item, or its documents if it is a batch with more than `left` characters."""
    is_large = isinstance(item, DocumentBatch) and item.characters > left
    return item.documents() if is_large and isinstance(item, DocumentBatch) else (item,)


def characters_of(item: Items) -> int:
    """Return the characters of documents with metadata and locators, or of a failure."""
    if isinstance(item, DocumentBatch):
        return item.characters
    if isinstance(item, Failure):
        return len(item.document) + len(item.message)
    found = len(item.id) + len(item.text) + len(item.title)
    if not item.metadata and not item.locators:
        return found + _ENTRY
    found += _characters(item.metadata)
    return found + sum(len(one.kind) + _of_value(one.kind, one.value) + 2 * _ENTRY for one in item.locators)


def _of_value(kind: str, value: Any) -> int:
    """Return the characters of a locator's value; most are boxes, lists of four numbers."""
    return 5 * _ENTRY if kind == "box" and len(value) == 4 else _characters(value)


def _characters(value: Any) -> int:
    found = 0
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            found += len(one)
        elif isinstance(one, Mapping):
            found += sum(len(str(name)) for name in one)
            pending.extend(one.values())
        elif isinstance(one, (list, tuple)):
            pending.extend(one)
        found += _ENTRY
    return found


def mark_partial(file: SourceFile, items: Iterator[_I]) -> Iterator[_I | Failure]:
    """Yield the items of a file; failures of the file after a document become failures of a part of it."""
    some = False
    for item in items:
        if some and isinstance(item, Failure) and item.document == file.id and item.code == "document":
            yield file.partial(item.message)
        else:
            some = some or not isinstance(item, Failure)
            yield item


def _stamp(file: SourceFile) -> tuple[int, int]:
    if file.data is not None:
        return 0, 0
    status = file.path.stat()
    return status.st_mtime_ns, status.st_size


def with_encoding(file: SourceFile, items: Iterator[Items]) -> Iterator[Items]:
    """Yield the items of a file, documents with the encoding that was assumed for their text.

    A guess that may be wrong is reported once, after the items.
    """
    for item in items:
        name = file.assumed.encoding
        yield noted(item, name) if name is not None and isinstance(item, Document) else item
    if file.assumed.guess is not None:
        yield unsure(file, file.assumed.guess)


def noted(document: Document, name: str) -> Document:
    """Return a document with an encoding in its metadata, unless they have a field of this name."""
    metadata: dict[str, Any] = {ENCODING: name, **document.metadata}
    where = Locator(0, len(document.text), ENCODING, name)
    return replace(document, metadata=metadata, locators=(*document.locators, where))


def unsure(file: SourceFile, name: str) -> Failure:
    """Return a failure which reports that the guessed encoding of a file may be wrong."""
    return Failure(file.id, ENCODING, f"read as {name}, which may be wrong")


_PACKAGES: Final = ("resiliparse", "pypdfium2", "tree-sitter")


@cache
def readers_version() -> str:
    """Return a hash of the sources of the readers and the versions of the parsers that are installed.

    Files that were read with another version are read again.
    """
    state = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        data = path.read_bytes()
        state.update(len(data).to_bytes(8, "little") + data)
    for name in _PACKAGES:
        state.update(f"{name} {installed_version(name) or 'is missing'}\n".encode())
    return state.hexdigest()


__all__ = [
    "FORMATS",
    "Format",
    "Item",
    "Items",
    "Reader",
    "SourceFile",
    "SourceFiles",
    "batches_of",
    "find",
    "is_glob",
    "items_of",
    "known_kind",
    "reader_for",
    "reader_of",
    "single",
]
