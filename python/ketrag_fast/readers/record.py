"""Turn a record (a JSON line, a table row) into a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document

ID_NAMES = ("_id", "id")
_SHOWN = 8
_LONGEST = 300


def document_of(file: SourceFile, line: int, record: Mapping[str, Any]) -> Item:
    """Return {_id, title, text, metadata} as a document; the default id is file and line."""
    name = next((record[key] for key in ID_NAMES if record.get(key) is not None), None)
    if name is None or name == "":
        name = f"{file.id}:{line}"
    elif isinstance(name, (bool, dict, list, float)):
        return file.failure(f"line {line}: the id must be a string or an integer", line)
    text, title, metadata = record.get("text"), record.get("title"), record.get("metadata")
    if text is None:
        names = ", ".join(list(record)[:_SHOWN]) + (", ..." if len(record) > _SHOWN else "")
        problem = f"line {line}: the field 'text' is missing (found: {names or 'no field'})"
        return file.failure(problem[:_LONGEST], line)
    if not isinstance(text, str):
        return file.failure(f"line {line}: text must be a string", line)
    if title is not None and not isinstance(title, str):
        return file.failure(f"line {line}: title must be a string", line)
    if metadata is not None and not isinstance(metadata, dict):
        return file.failure(f"line {line}: metadata must be an object", line)
    if not text.strip() and not (title or "").strip():
        return file.failure(f"line {line}: the text is empty", line)
    return Document(str(name), text, title or "", metadata or {})


def parse_line(file: SourceFile, line: int, text: str) -> Item:
    """Return one line of JSON as a document."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        return file.failure(f"line {line} is not JSON: {error.msg} (column {error.colno})", line)
    except (ValueError, RecursionError) as error:
        return file.failure(f"line {line} is not usable JSON: {error}", line)
    if not isinstance(record, dict):
        return file.failure(f"line {line} is not a JSON object", line)
    return document_of(file, line, record)
