"""Jupyter notebooks: the text and code cells in order, with the beginning of what code printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.headings import Heading, sections
from ketrag_fast.readers.plain_text import markdown_headings
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

LARGEST: Final = 200_000_000
_OUTPUT: Final = 2_000
"""Characters that are kept of the outputs of a cell."""


def read_notebook(file: SourceFile) -> Iterator[Item]:
    """Yield the notebook as one document with a locator for each cell."""
    if file.size() > LARGEST:
        raise DocumentError(f"the notebook is larger than {LARGEST:,} bytes")
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
