"""JSON and XML of any structure: a line `name: value` for each value, with its path as a locator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ketrag_fast._core import lowered_text, raised_text
from ketrag_fast.base.safe_xml import Handler, parse
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.chats import conversations
from ketrag_fast.readers.html import plain_text
from ketrag_fast.readers.jsonl import FieldsLeftOut, document_of
from ketrag_fast.readers.plain_text import markdown_headings
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import Heading, TextWriter, sections
from ketrag_fast.readers.titles import LONGEST_TITLE, cut_address, cut_name
from ketrag_fast.readers.values import LARGEST, write_values
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

_PIECE: Final = 1 << 18
_MOST: Final = 2_000_000


def read_json(file: SourceFile) -> Iterator[Item]:
    """Yield a document per record of a list of {text, ...}, else one document of all values."""
    _check_size(file)
    text = file.text()
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    chats = conversations(file, data)
    if chats is not None:
        yield from chats
        return
    if (
        isinstance(data, list)
        and data
        and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in data)
    ):
        left_out = FieldsLeftOut(file)
        for number, record in enumerate(data, 1):
            yield document_of(file, number, record, left_out)
        yield from left_out.notices()
        return
    writer = TextWriter()
    write_values(data, "$", "", writer, 0)
    title = data.get("title") if isinstance(data, dict) else None
    if not writer.text():
        yield file.failure("the file has no values")
        return
    yield writer.document(file, title if isinstance(title, str) else "", {})


def _check_size(file: SourceFile) -> None:
    if file.size() > LARGEST:
        raise DocumentError(f"the file is larger than {LARGEST:,} bytes")


def read_xml(file: SourceFile) -> Iterator[Item]:
    """Yield one document: a line for each text, `name: text` for elements that only have text."""
    _check_size(file)
    handler = _Tree()
    with file.open() as stream:
        parse(iter(lambda: stream.read(_PIECE), b""), handler, "the file", entities=True)
    if not handler.writer.text():
        yield file.failure("the file has no text")
        return
    yield handler.writer.document(file, handler.title, {})


class _Element:
    """An element that is open: what it holds so far, in order.

    `held` has its own text as strings, and each element inside as a `_Closed`. An element that holds many
    others before its first text is `streamed`: they are written at once.
    """

    __slots__ = ("attributes", "counts", "has_text", "held", "inner", "name", "path", "streamed")

    def __init__(self, name: str, path: str, attributes: str) -> None:
        self.name, self.path, self.attributes = name, path, attributes
        self.held: list[str | _Closed] = []
        self.counts: dict[str, int] = {}
        self.has_text = self.streamed = False
        self.inner = 0


class _Closed(NamedTuple):
    """An element that has ended: its lines with their paths, and its text if a sentence may contain it."""

    lines: list[tuple[str, str]]
    inline: str | None
    attributes: tuple[tuple[str, str], ...] = ()
    name: str = ""


_HELD: Final = 64
"""Elements without text between them after which their parent is not a sentence."""


class _Tree(Handler):
    """Writes a line for each text. Text with elements inside, as in a paragraph, stays one line."""

    def __init__(self) -> None:
        self.writer = TextWriter()
        self.title = ""
        self._open: list[_Element] = [_Element("", "", "")]
        self._open[0].streamed = True
        self._lines = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        parent = self._open[-1]
        self._end_text(parent)
        count = parent.counts[name] = parent.counts.get(name, 0) + 1
        fields = [f"{key}: {' '.join(value.split())}" for key, value in attributes.items() if value.strip()]
        parent.inner += 1
        if parent.inner > _HELD and not parent.has_text and not parent.streamed:
            self._stream()
        about = f"{name} ({', '.join(fields)})" if fields else ""
        step = f"{cut_name(name)}[{count}]" if count > 1 else cut_name(name)
        self._open.append(_Element(name, cut_address(f"{parent.path}/{step}"), about))

    def text(self, text: str) -> None:
        element = self._open[-1]
        element.held.append(text)
        element.has_text = element.has_text or not text.isspace()

    def end(self, name: str) -> None:
        element = self._open[-1]
        self._end_text(element)
        self._open.pop()
        closed = _Closed([], None) if element.streamed else _close(element)._replace(name=element.name)
        if name.lower() == "title" and not self.title and closed.inline:
            self.title = cut_name(closed.inline, LONGEST_TITLE)
        parent = self._open[-1]
        if parent.streamed:
            self._write(closed.lines)
        else:
            parent.held.append(closed)

    def _stream(self) -> None:
        """Write what the open elements hold, and from now on each element inside them when it ends."""
        for element in self._open:
            if not element.streamed:
                self._write(_close(element).lines)
                element.streamed, element.held, element.attributes = True, [], ""

    def _end_text(self, element: _Element) -> None:
        """Write the text that a streamed element has between two others."""
        if element.streamed and element.held:
            text = " ".join("".join(one for one in element.held if isinstance(one, str)).split())
            element.held = []
            self._write([(text, element.path)] if text else [])

    def _write(self, lines: Iterable[tuple[str, str]]) -> None:
        for line, path in lines:
            self._lines += 1
            if self._lines > _MOST:
                raise DocumentError(f"more than {_MOST:,} elements with text")
            mark = self.writer.mark()
            self.writer.paragraph(line, item=True)
            self.writer.located(mark, "path", path)


def _close(element: _Element) -> _Closed:
    path = element.path
    about = ((element.attributes, path),) if element.attributes else ()
    if not element.has_text:
        inner = [one for one in element.held if isinstance(one, _Closed)]
        lines = [*about, *(line for one in inner for line in one.lines)]
        alone = inner[0] if len(inner) == 1 else _Closed([], "" if not inner else None)
        return _Closed(lines, alone.inline, (*about, *alone.attributes))
    lines, sentence = [], []
    marks = list(about)
    for one in element.held:
        if isinstance(one, str):
            sentence.append(one)
        elif one.inline is not None:
            sentence.append(_in_sentence("".join(sentence[-8:])[-60:], one))
            marks += one.attributes
        else:
            lines += _sentence(sentence, path)
            sentence = []
            lines += one.lines
    if lines:
        return _Closed([*marks, *lines, *_sentence(sentence, path)], None)
    whole = "".join(sentence)
    text = " ".join(whole.split())
    if len(element.held) == 1 or not any(isinstance(one, _Closed) for one in element.held):
        return _Closed([*marks, (f"{element.name}: {text}", path)], whole, tuple(marks))
    return _Closed([*about, (text, path), *marks[len(about) :]], whole, tuple(marks))


def _in_sentence(before: str, own: _Closed) -> str:
    """Return the text of an element after other text; superscripts and subscripts have their sign."""
    inline = own.inline or ""
    if own.name in ("sup", "superscript"):
        return raised_text(before, inline)
    return lowered_text(before, inline) if own.name in ("sub", "subscript") else inline


def _sentence(parts: Sequence[str], path: str) -> list[tuple[str, str]]:
    text = " ".join("".join(parts).split())
    return [(text, path)] if text else []


LARGEST_NOTEBOOK: Final = 200_000_000
_OUTPUT: Final = 2_000
"""Characters that are kept of the outputs of a cell, and of its error."""
_TEXTS: Final = ("text/plain", "text/markdown", "text/latex")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:?]*[a-zA-Z]")


def read_notebook(file: SourceFile) -> Iterator[Item]:
    """Yield the notebook as one document with a locator for each cell."""
    if file.size() > LARGEST_NOTEBOOK:
        raise DocumentError(f"the notebook is larger than {LARGEST_NOTEBOOK:,} bytes")
    try:
        data = json.loads(file.text())
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not a notebook: {error}") from None
    cells = _cells(data)
    if cells is None:
        raise DocumentError("not a notebook: it has no cells")
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


def _cells(data: Any) -> list[Any] | None:
    """Return the cells of a notebook; None for other JSON. Before format 4 they are in worksheets."""
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("cells"), list):
        return list(data["cells"])
    sheets = data.get("worksheets")
    if not isinstance(sheets, list):
        return None
    cells = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    ends_lines = data.get("nbformat") != 2
    return [_renewed(cell, ends_lines) for own in cells if isinstance(own, list) for cell in own]


def _renewed(cell: Any, ends_lines: bool) -> Any:
    """Return a cell of format 2 or 3 in format 4: code was `input`, and headings were cells.

    The lines of format 2 have no ends.
    """
    if not isinstance(cell, dict):
        return cell
    if not ends_lines:
        lists = {key: "\n".join(map(str, value)) for key, value in cell.items() if _is_lines(key, value)}
        cell = {**cell, **lists}
    if cell.get("cell_type") == "heading":
        level = cell.get("level")
        marks = "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1)
        return {"cell_type": "markdown", "source": f"{marks} {_joined(cell.get('source'))}"}
    return {**cell, "source": cell.get("source", cell.get("input"))}


def _is_lines(key: str, value: Any) -> bool:
    return key in ("source", "input") and isinstance(value, list)


def _cell_text(cell: dict[str, Any]) -> str:
    parts = [_joined(cell.get("source"))]
    outputs = cell.get("outputs")
    room, error = _OUTPUT, ""
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict) and output.get("output_type") in ("error", "pyerr"):
            error = _error_text(output)
        elif isinstance(output, dict) and room > 0:
            parts.append(_output_text(output)[:room])
            room -= len(parts[-1])
    parts.append(error)
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def _error_text(output: dict[str, Any]) -> str:
    """Return the end of an error: its message and the calls before it."""
    message = f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}".strip(": ")
    trace = output.get("traceback")
    lines = [one for one in trace if isinstance(one, str)] if isinstance(trace, list) else []
    text = _as_shown("\n".join(lines)).rstrip()
    return (text if message in text else f"{text}\n{message}")[-_OUTPUT:]


def _output_text(output: dict[str, Any]) -> str:
    """Return an output as a terminal shows it."""
    data = output.get("data")
    if isinstance(data, dict):
        plain = next((found for kind in _TEXTS if (found := _joined(data.get(kind)))), "")
        if not plain and (page := _joined(data.get("text/html"))):
            plain = plain_text(page)
    else:
        plain = _joined(output.get("text"))
    return _as_shown(plain)[:_OUTPUT]


def _as_shown(text: str) -> str:
    """Return text without colours, and of lines that were overwritten (`\\r`) what remains visible."""
    lines = _COLOUR.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _language(metadata: Any) -> str:
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    found = kernel.get("language") if isinstance(kernel, dict) else None
    return found[:40] if isinstance(found, str) else ""
