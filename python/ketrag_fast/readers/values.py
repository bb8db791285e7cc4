"""Values of any structure as text: a line `name: value` for each, with its path as a locator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.readers.titles import cut_address, cut_name

LARGEST: Final = 200_000_000
_DEEPEST: Final = 200


def text_of_record(record: Mapping[str, Any]) -> str:
    """Return a line `name: value` for each value of a record."""
    if not any(isinstance(one, (dict, list)) for one in record.values()):  # as most lines of logs
        return TextWriter.plain("\n".join(_line(key, one) for key, one in record.items()))
    writer = TextWriter()
    write_values(dict(record), "$", "", writer, 0)
    return writer.text()


def write_values(value: Any, path: str, name: str, writer: TextWriter, depth: int) -> None:
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
            short = cut_name(key)
            inner = cut_address(f"{path}.{short}" if isinstance(value, dict) else f"{path}[{key}]")
            write_values(one, inner, short if isinstance(value, dict) else name, writer, depth + 1)


def _line(name: str, value: Any) -> str:
    plain = _plain(value)
    return f"{name}: {plain}" if name else plain


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if type(value) is int:
        return str(value)
    return json.dumps(value, ensure_ascii=False)
