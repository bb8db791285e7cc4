"""JSON and XML of any structure: a line `name: value` for each value, with its path as a locator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ketrag_fast.base.safe_xml import Handler, parse
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.jsonl import document_of
from ketrag_fast.readers.plain_text import markdown_headings
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import Heading, TextWriter, sections
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

LARGEST: Final = 200_000_000
_PIECE: Final = 1 << 18
_DEEPEST: Final = 200
_MOST: Final = 2_000_000


def read_json(file: SourceFile) -> Iterator[Item]:
    """Yield a document per record of a list of {text, ...}, else one document of all values."""
    _check_size(file)
    text = file.text()
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    if (
        isinstance(data, list)
        and data
        and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in data)
    ):
        for number, record in enumerate(data, 1):
            yield document_of(file, number, record)
        return
    writer = TextWriter()
    _walk(data, "$", "", writer, 0)
    title = data.get("title") if isinstance(data, dict) else None
    if not writer.text():
        yield file.failure("the file has no values")
        return
    yield writer.document(file, title if isinstance(title, str) else "", {})


def _check_size(file: SourceFile) -> None:
    if file.size() > LARGEST:
        raise DocumentError(f"the file is larger than {LARGEST:,} bytes")


def _walk(value: Any, path: str, name: str, writer: TextWriter, depth: int) -> None:
    """Write the values of an object as lines of one paragraph, then its nested values."""
    if depth > _DEEPEST or writer.length > LARGEST:
        raise DocumentError(f"nested more than {_DEEPEST} levels deep, or more than {LARGEST:,} characters")
    if not isinstance(value, (dict, list)):
        writer.paragraph(_line(name, value))
        return
    entries = (
        list(value.items()) if isinstance(value, dict) else [(str(n), one) for n, one in enumerate(value)]
    )
    plain = [(key, one) for key, one in entries if not isinstance(one, (dict, list))]
    if plain:
        mark = writer.mark()
        if isinstance(value, dict):
            writer.paragraph("\n".join(_line(key, one) for key, one in plain))
        else:
            writer.paragraph(_line(name, ", ".join(_plain(one) for _, one in plain)))
        writer.located(mark, "path", path)
    for key, one in entries:
        if isinstance(one, (dict, list)):
            inner = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
            _walk(one, inner, key if isinstance(value, dict) else name, writer, depth + 1)


def _line(name: str, value: Any) -> str:
    plain = _plain(value)
    return f"{name}: {plain}" if name else plain


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False)


def read_xml(file: SourceFile) -> Iterator[Item]:
    """Yield one document: a line for each text, `name: text` for elements that only have text."""
    _check_size(file)
    handler = _Tree()
    with file.open() as stream:
        parse(iter(lambda: stream.read(_PIECE), b""), handler, "the file")
    if not handler.writer.text():
        yield file.failure("the file has no text")
        return
    yield handler.writer.document(file, handler.title, {})


class _Tree(Handler):
    def __init__(self) -> None:
        self.writer = TextWriter()
        self.title = ""
        self._path: list[str] = []
        self._counts: list[dict[str, int]] = [{}]
        self._text: list[str] = []
        self._leaf = False
        self._lines = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._flush(leaf=False)
        count = self._counts[-1][name] = self._counts[-1].get(name, 0) + 1
        self._path.append(f"{name}[{count}]" if count > 1 else name)
        self._counts.append({})
        self._leaf = True
        fields = [f"{key}: {' '.join(value.split())}" for key, value in attributes.items() if value.strip()]
        if fields:
            self._write(f"{name} ({', '.join(fields)})")

    def text(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        self._flush(leaf=self._leaf, name=name)
        self._leaf = False
        self._path.pop()
        self._counts.pop()

    def _flush(self, *, leaf: bool, name: str = "") -> None:
        text = " ".join("".join(self._text).split())
        self._text = []
        if not text:
            return
        if leaf and name.lower() == "title" and not self.title:
            self.title = text[:300]
        self._write(f"{name}: {text}" if leaf else text)

    def _write(self, line: str) -> None:
        self._lines += 1
        if self._lines > _MOST:
            raise DocumentError(f"more than {_MOST:,} elements with text")
        mark = self.writer.mark()
        self.writer.paragraph(line, item=True)
        self.writer.located(mark, "path", "/" + "/".join(self._path))


LARGEST_NOTEBOOK: Final = 200_000_000
_OUTPUT: Final = 2_000
"""Characters that are kept of the outputs of a cell."""


def read_notebook(file: SourceFile) -> Iterator[Item]:
    """Yield the notebook as one document with a locator for each cell."""
    if file.size() > LARGEST_NOTEBOOK:
        raise DocumentError(f"the notebook is larger than {LARGEST_NOTEBOOK:,} bytes")
    try:
        data = json.loads(file.text())
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not a notebook: {error}") from None
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise DocumentError("not a notebook of format 4: it has no cells")
    parts: list[str] = []
    length = 0
    headings: list[Heading] = []
    locators: list[Locator] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or not (text := _cell_text(cell)):
            continue
        length += 2 if parts else 0
        is_markdown = cell.get("cell_type") == "markdown"
        locators.append(Locator(length, length + len(text), "markdown" if is_markdown else "code", 0))
        if is_markdown:
            headings += [Heading(one.start + length, one.level, one.name) for one in markdown_headings(text)]
        locators.append(Locator(length, length + len(text), "cell", number))
        parts.append(text)
        length += len(text)
    if not parts:
        yield file.failure("the notebook has no text")
        return
    title = headings[0].name if headings else ""
    language = _language(data.get("metadata"))
    marks = (*sections(headings, length, title), *locators)
    yield Document(file.id, "\n\n".join(parts), title, {"language": language} if language else {}, marks)


def _cell_text(cell: dict[str, Any]) -> str:
    parts = [_joined(cell.get("source"))]
    outputs = cell.get("outputs")
    room = _OUTPUT
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict) and room > 0:
            data = output.get("data")
            plain = output.get("text") or (data.get("text/plain") if isinstance(data, dict) else None)
            parts.append(_joined(plain)[:room])
            room -= len(parts[-1])
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _language(metadata: Any) -> str:
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    found = kernel.get("language") if isinstance(kernel, dict) else None
    return found[:40] if isinstance(found, str) else ""
