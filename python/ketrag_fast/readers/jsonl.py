"""JSON lines: one document per line. A malformed line is a failure; the other lines are read."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import CONTROLS, mark_of
from ketrag_fast.readers.protocol import MOST_LINES, Item, Items, SourceFile, is_inside
from ketrag_fast.readers.values import text_of_record
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import EMBEDDED, DocumentBatch

_BLOCK: Final = 1 << 18
"""Bytes read at once, few enough to check the time limit often."""
_MANY: Final = 60_000
_SHORT: Final = 20
_TOGETHER: Final = 20_000
"""A file with more than `_MANY` lines of less than `_SHORT` bytes gives `_TOGETHER` documents.

Only records without an id and without metadata are read together. Each takes 60 to 90 microseconds as a
separate document, whatever its length: 250,000 with one digit each took 22 s. The length is that of the first
lines.
"""
_COPIES: Final = 8
"""Memory for reading a line as a multiple of its size: bytes, parsed value, message to the parent."""


def read_jsonl(file: SourceFile) -> Iterator[Item]:
    """Yield a document for each line, {_id, title, text, metadata}; skip blank lines.

    Short values of other fields, and citations in a table next to a corpus, are added to the metadata.
    """
    return with_citations(file, _lines(file))


def read_jsonl_batches(file: SourceFile) -> Iterator[Items]:
    """Yield the same documents and failures, plain documents in batches, which the core parses.

    Lines with errors, metadata or another encoding are parsed one by one, as `read_jsonl` does.
    """
    head = file.head(_BLOCK)
    lines = head.count(b"\n")
    count = file.size() * lines // max(len(head), 1)
    if count > _MANY and len(head) < _SHORT * lines:
        return _records_together(file, _batches(file), -(-count // _TOGETHER))
    return _batches(file)


def _records_together(file: SourceFile, items: Iterator[Items], count: int) -> Iterator[Items]:
    """Yield each `count` adjacent records as one document, with the id of the first one."""
    held: list[Document] = []
    prefix = f"{file.id}:"

    def together() -> Iterator[Document]:
        if held:
            yield Document(held[0].id, "\n".join(one.text for one in held))
            held.clear()

    for item in items:
        for one in item.documents() if isinstance(item, DocumentBatch) else (item,):
            is_plain = isinstance(one, Document) and one.id.startswith(prefix) and not one.title
            if isinstance(one, Document) and is_plain and not one.metadata:
                held.append(one)
                if len(held) == count:
                    yield from together()
            else:
                yield from together()
                yield one
    yield from together()
    yield file.partial(
        f"each {count} adjacent records are read as one document: the file has more than"
        f" {_MANY:,} lines, and less than {_SHORT} bytes for each"
    )


def _batches(file: SourceFile) -> Iterator[Items]:
    table = table_of(file)
    head = mark_of(file.head(4))
    if head[1] not in (None, "utf-8") or (table is not None and os.path.lexists(table)):
        yield from read_jsonl(file)
        return
    with file.open() as stream:
        stream.seek(head[0])
        number, longest, bad = 1, _longest_line(), BadLines(file)
        while block := stream.read(_BLOCK):
            rest = stream.readline(longest)
            is_whole = len(rest) < longest or rest.endswith(b"\n")
            block = block + rest if is_whole else block[: block.rfind(b"\n") + 1]
            if block:
                ids, titles, texts, contents, left, lines = _core.read_json_lines(block, file.id, number)
                packed = {"id": ids[1], "title": titles[1], "text": texts[1]}
                batch = DocumentBatch(ids[0], titles[0], texts[0], contents, packed)
                yield from _in_order(file, batch, left, bad)
                number += lines
            if not is_whole:
                while rest and not rest.endswith(b"\n"):
                    rest = stream.readline(_BLOCK)
                yield file.failure(
                    f"line {number}: it is larger than {longest:,} bytes, an eighth of read_memory",
                    number,
                )
                number += 1
        if number == 1:
            yield file.failure("the file is empty")
        yield from bad.left_out.notices()


def _longest_line() -> int:
    """Return the size of the longest line that is read: its text is copied several times."""
    if sys.platform == "win32":  # the limit of the process applies instead
        return sys.maxsize
    import resource

    bound, _ = resource.getrlimit(resource.RLIMIT_AS)
    return sys.maxsize if bound == resource.RLIM_INFINITY else max(bound // _COPIES, _BLOCK)


class BadLines:
    """The lines of a file that are not JSON, and the fields of records that are left out.

    The first lines get a message each. Parsing a million of them for that took 10 s, and a build reports
    their number instead.
    """

    def __init__(self, file: SourceFile) -> None:
        self.count = 0
        self.left_out = FieldsLeftOut(file)
        self._further = file.failure("it is not JSON", 0)

    def further(self) -> Failure | None:
        """Count a line; return the failure of one that is only counted, None for one that is reported."""
        self.count += 1
        return self._further if self.count > MOST_LINES else None


def _in_order(
    file: SourceFile, batch: DocumentBatch, left: list[tuple[int, int, bytes, bool]], bad: BadLines
) -> Iterator[Items]:
    """Yield the documents of a batch up to each line that was left to `parse_line`, and what this line is."""
    if not left:
        if len(batch):
            yield batch
        return
    start = 0
    for before, number, data, is_bad in left:
        if start < before:
            yield batch.part(start, before)
        yield (bad.further() if is_bad else None) or _parsed(file, number, data, bad.left_out)
        start = before
    if start < len(batch):
        yield batch.part(start, len(batch))


def _parsed(file: SourceFile, number: int, data: bytes, left_out: FieldsLeftOut) -> Item:
    try:
        is_plain = data.isascii() and len(data.translate(None, CONTROLS)) == len(data)
        text = data.decode("ascii") if is_plain else file.line(data)
    except DocumentError as error:
        return file.failure(f"line {number}: {error}", number)
    return parse_line(file, number, text, left_out)


def has_short_lines(file: SourceFile, most: int) -> bool:
    """Return whether no line is longer than `most` bytes and nothing else is read whole.

    It may also return False for lines of more than a quarter of that.
    """
    table = table_of(file)
    if table is not None and os.path.lexists(table):
        return False
    with file.open() as stream:
        block = stream.read(most // 4)
        if mark_of(block)[1] not in (None, "utf-8"):
            return False
        while len(block) == most // 4:
            if b"\n" not in block:
                return False
            block = stream.read(most // 4)
    return True


def _lines(file: SourceFile) -> Iterator[Item]:
    left_out = FieldsLeftOut(file)
    yield from _documents(file, left_out)
    yield from left_out.notices()


def _documents(file: SourceFile, left_out: FieldsLeftOut) -> Iterator[Item]:
    with file.open() as stream:
        length, encoding = mark_of(stream.read(4))
        stream.seek(0)
        if encoding not in (None, "utf-8"):  # lines of UTF-16 cannot be cut at a byte
            lines = file.text(stream.read()).split("\n")
            for number, text in enumerate(lines, 1):
                if text.strip():
                    yield parse_line(file, number, text, left_out)
            return
        stream.seek(length)
        empty = True
        for number, data in enumerate(stream, 1):
            empty = False
            if not data.strip():
                continue
            yield _parsed(file, number, data, left_out)
        if empty:
            yield file.failure("the file is empty")


NAME: Final = "citations.tsv"
LARGEST: Final = 1_000_000_000
"""Maximum size of the table in bytes."""
CORPUS: Final = "corpus.jsonl"
_CITING: Final = ("citing", "a", "from", "source", "citing-id", "citing_id")
_CITED: Final = ("cited", "b", "to", "target", "cited-id", "cited_id")


def table_of(file: SourceFile) -> Path | None:
    """Return the path that the table of a file has; None for a file that is not a corpus."""
    is_corpus = file.path.name == CORPUS and file.data is None
    return file.path.with_name(NAME) if is_corpus else None


def with_citations(file: SourceFile, items: Iterator[Item]) -> Iterator[Item]:
    """Yield the documents of a corpus with the ids they cite, from the table, in `cites` of the metadata.

    Malformed lines of the table become failures; the documents are kept.
    """
    path = table_of(file)
    if path is None or not os.path.lexists(path):
        yield from items
        return
    root = None if file.follow_links else path.parent
    table = SourceFile(path, file.id.removesuffix(CORPUS) + NAME, file.fallback_encoding, root=root)
    if not file.follow_links and not is_inside(path, path.parent):
        yield table.failure("symbolic link to a file outside its folder; --follow-links follows it")
        yield from items
        return
    cites, failures = _read_table(table)
    yield from failures
    for item in items:
        more = cites.get(item.id) if isinstance(item, Document) else None
        if isinstance(item, Failure) or more is None:
            yield item
        else:
            yield Document(item.id, item.text, item.title, _merge_metadata(dict(item.metadata), more))


def _merge_metadata(metadata: dict[str, Any], more: list[str]) -> dict[str, Any]:
    given = metadata.get("cites")
    before = list(given) if isinstance(given, (list, tuple)) else [] if given in (None, "") else [given]
    metadata["cites"] = [*before, *more]
    return metadata


def _read_table(file: SourceFile) -> tuple[dict[str, list[str]], list[Failure]]:
    """Return the ids that each document cites, in table order: two tab-separated ids per line.

    The first cites the second, unless the header is `cited` and `citing`.
    """
    cites: dict[str, list[str]] = {}
    failures: list[Failure] = []
    try:
        lines = file.text(read_regular(file.path, LARGEST, file.root)).splitlines()
    except (DocumentError, OSError) as error:
        return {}, [file.failure(f"cannot be read: {error}")]
    turned = False
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split("\t")]
        if not any(fields):
            continue
        if number == 1 and len(fields) == 2 and {f.lower() for f in fields} <= {*_CITING, *_CITED}:
            turned = fields[0].lower() in _CITED
            continue
        if len(fields) != 2 or not all(fields):
            failures.append(file.failure(f"line {number}: expected two tab-separated ids", number))
            continue
        citing, cited = reversed(fields) if turned else fields
        cites.setdefault(citing, []).append(cited)
    return cites, failures


ID_NAMES = ("_id", "id")
_READ: Final = frozenset((*ID_NAMES, "text", "title", "metadata"))
_LONGEST_VALUE: Final = 300
"""Maximum length in characters of a text that is metadata: a name, an address, a path."""
_LONGEST_NAME: Final = 100
"""Maximum length in characters of a field's name; longer names are text that a program has put there."""
_MOST_VALUES: Final = 50
"""Maximum number of values of a list that is metadata: tags and authors, but not vectors."""
_MOST_FIELDS: Final = 50
"""Maximum number of fields of a record that become metadata."""
_SHOWN_NAMES: Final = 8
"""Maximum number of fields that the notice names."""


class FieldsLeftOut:
    """Fields of the records of a file that are too long for metadata, such as vectors."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def add(self, names: Iterable[str]) -> None:
        """Add names of fields."""
        self._names |= dict.fromkeys(names)

    def notices(self) -> Iterator[Failure]:
        """Yield the notice that names the fields, if there are any."""
        if self._names:
            shown = ", ".join(name[:_LONGEST_NAME] for name in [*self._names][:_SHOWN_NAMES])
            more = ", ..." if len(self._names) > _SHOWN_NAMES else ""
            what = f"fields that are too long or too many for metadata: {shown}{more}"
            yield Failure(self._file.id, EMBEDDED, what)


def _short_fields(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that are metadata, and the names of those that are left out."""
    found: dict[str, Any] = {}
    left: list[str] = []
    for name, value in record.items():
        if name in _READ or value is None:
            continue
        if len(found) < _MOST_FIELDS and len(name) <= _LONGEST_NAME and _is_short(value):
            found[name] = value
        else:
            left.append(name)
    return found, left


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= _MOST_VALUES and all(
            not isinstance(one, (list, dict)) and _is_short(one) for one in value
        )
    if isinstance(value, str):
        is_valid = not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)
        return is_valid and len(value) <= _LONGEST_VALUE
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)


def document_of(
    file: SourceFile, line: int, record: Mapping[str, Any], left_out: FieldsLeftOut | None = None
) -> Item:
    """Return {_id, title, text, metadata} as a document; the default id is file and line.

    Short values of other fields are metadata, too; the names of longer ones are added to `left_out`.
    """
    name = next((record[key] for key in ID_NAMES if record.get(key) is not None), None)
    if name is None or name == "":
        name = f"{file.id}:{line}"
    elif isinstance(name, (bool, dict, list, float)):
        return file.failure(f"line {line}: the id must be a string or an integer", line)
    text, title, metadata = record.get("text"), record.get("title"), record.get("metadata")
    if text is None:
        return _without_text(file, line, str(name), record)
    if not isinstance(text, str):
        return file.failure(f"line {line}: text must be a string", line)
    if title is not None and not isinstance(title, str):
        return file.failure(f"line {line}: title must be a string", line)
    if metadata is not None and not isinstance(metadata, dict):
        return file.failure(f"line {line}: metadata must be an object", line)
    if not text.strip() and not (title or "").strip():
        return file.failure(f"line {line}: the text is empty", line)
    more, left = _short_fields(record)
    if left_out is not None:
        left_out.add(left)
    return Document(str(name), text, title or "", {**more, **(metadata or {})})


def _without_text(file: SourceFile, line: int, name: str, record: Mapping[str, Any]) -> Item:
    """Return a record without a text as a document that has its values, with their names."""
    try:
        text = text_of_record({key: value for key, value in record.items() if key not in ID_NAMES})
    except DocumentError as error:
        return file.failure(f"line {line}: {error}", line)
    return Document(name, text, "") if text else file.failure(f"line {line}: the record has no values", line)


def parse_line(file: SourceFile, line: int, text: str, left_out: FieldsLeftOut | None = None) -> Item:
    """Return one line of JSON as a document, as `document_of` does."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        return file.failure(f"line {line} is not JSON: {error.msg} (column {error.colno})", line)
    except (ValueError, RecursionError) as error:
        return file.failure(f"line {line} is not usable JSON: {error}", line)
    if not isinstance(record, dict):
        return file.failure(f"line {line} is not a JSON object", line)
    return document_of(file, line, record, left_out)
