"""Tables: the first row is the header, every other row becomes a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec, module_from_spec
from itertools import zip_longest
from types import ModuleType

from ketrag_fast.readers.decode import decode
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.record import ID_NAMES, document_of

_LONGEST_CELL = 2**31 - 1  # the largest C long on every platform; the library's default is 131,072
_LONGEST_NAME = 200  # names are repeated in every row
_DELIMITERS = ",;\t|"
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_MOST_COLUMNS = 16_384  # as in a sheet: every row gets all of them
_SEPARATOR = re.compile(r"\s*sep=(.)[ \t]*(?:\r\n?|\n)", re.I)  # a first line that Excel writes and reads


@cache
def _csv() -> ModuleType:
    """Return a private instance of the standard CSV parser with a larger cell limit.

    The limit is global in the module `_csv`: `csv.field_size_limit` would change it for the whole process.
    """
    spec = find_spec("_csv")
    if spec is None or spec.loader is None:
        raise ImportError("this Python has no module _csv")
    own = module_from_spec(spec)
    spec.loader.exec_module(own)
    own.field_size_limit(_LONGEST_CELL)
    return own


def read_table(file: SourceFile) -> Iterator[Item]:
    """Yield a document for each row: `_id` or `id`, `title` and `text`; other columns are metadata.

    Without a column `text`, the text is all columns except id and title, as lines of `name: value`.
    A column without a name, or beyond the header, is `column N`.
    """
    data = file.read_bytes()
    if not data:
        yield file.failure("the file is empty")
        return
    text = decode(data, file.fallback_encoding)
    csv = _csv()
    lines = (line[0] for line in _LINE.finditer(text))
    named = _SEPARATOR.match(text)
    if named:
        next(lines)
    rows = csv.reader(lines, delimiter=named[1] if named else _delimiter(file, text))
    skipped = 1 if named else 0
    header: list[str] | None = None
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            line = rows.line_num + skipped
            yield file.failure(f"line {line}: {error}", line)
            continue
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            if len(row) > _MOST_COLUMNS:
                yield file.failure(f"the table has {len(row):,} columns; the maximum is {_MOST_COLUMNS:,}")
                return
            header = header_of(row)
            continue
        yield row_document(file, rows.line_num + skipped, header, row)
    if header is None:
        yield file.failure("the table is empty")


def header_of(row: Sequence[str]) -> list[str]:
    """Return the names of the columns; a name that appears again gets a number: `phone (2)`."""
    names: dict[str, None] = {}
    numbers: Counter[str] = Counter()
    for place, cell in enumerate(row, 1):
        own = name = _column(cell, place)[:_LONGEST_NAME]
        numbers[own] += 1
        while name in names:
            name = f"{own} ({numbers[own]})"
            numbers[own] += name in names
        names[name] = None
    return list(names)


def row_document(file: SourceFile, line: int, header: list[str], row: list[str]) -> Item:
    """Return one row as a document."""
    if len(row) > _MOST_COLUMNS:
        return file.failure(f"line {line}: {len(row):,} cells; the maximum is {_MOST_COLUMNS:,}", line)
    cells = dict(zip_longest(header, row[: len(header)], fillvalue=""))
    further = enumerate(row[len(header) :], len(header) + 1)
    cells.update((f"column {place}", cell) for place, cell in further if cell.strip())
    title = cells.pop("title", "")
    name = next((cells.pop(key) for key in ID_NAMES if cells.get(key)), None)
    if "text" in cells:
        text = cells.pop("text")
        extra = {key: value for key, value in cells.items() if key not in ID_NAMES}
    else:
        text = "\n".join(f"{key}: {value}" for key, value in cells.items() if value and key not in ID_NAMES)
        extra = {}
    return document_of(file, line, {"_id": name, "title": title, "text": text, "metadata": extra})


def _column(cell: str, place: int) -> str:
    name = cell.strip()
    return name.lower() if name.lower() in ("title", "text", *ID_NAMES) else name or f"column {place}"


def _delimiter(file: SourceFile, text: str) -> str:
    if file.suffix == ".tsv":
        return "\t"
    header = text.lstrip().split("\n", 1)[0]
    counts = [(header.count(mark), -place) for place, mark in enumerate(_DELIMITERS)]
    most, place = max(counts)
    return _DELIMITERS[-place] if most else ","
