"""JSON and XML of any structure: a line `name: value` for each value, with its path as a locator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ketrag_fast.base.safe_xml import Handler, parse
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.record import document_of
from ketrag_fast.readers.text_builder import TextWriter

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
