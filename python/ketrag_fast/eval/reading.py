"""Lines and JSON of data sets, each with its location for error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ketrag_fast.errors import DocumentError


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield lines that are not blank, each with its location (`file:line`); skips a byte order mark."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                where = f"{path}:{number}"
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise DocumentError(f"{where}: not UTF-8 ({error.reason})") from error
                if line.strip():
                    yield line, where
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from error


def objects(path: Path) -> Iterator[tuple[dict[str, object], str]]:
    """Yield JSON objects, one per line."""
    for line, where in lines(path):
        yield require_object(parse_json(line, where), where), where


def entries(path: Path) -> Iterator[tuple[dict[str, object], str]]:
    """Yield JSON objects, one per line or all in one array, as in published files."""
    first = next(iter(lines(path)), ("", ""))[0].lstrip()
    if not first.startswith("["):
        yield from objects(path)
        return
    try:
        whole = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path}: not UTF-8 ({error.reason})") from error
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from error
    array = parse_json(whole, str(path))
    for number, entry in enumerate(array if isinstance(array, list) else [array], 1):
        where = f"{path}: entry {number}"
        yield require_object(entry, where), where


def parse_json(text: str, where: str) -> object:
    """Return the JSON value. Raises DocumentError."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: not JSON: {error}") from error
    return value


def require_object(value: object, where: str) -> dict[str, object]:
    """Return the value if it is a JSON object. Raises DocumentError."""
    if not isinstance(value, dict):
        raise DocumentError(f"{where}: not a JSON object")
    return value


def identity(entry: Mapping[str, object], where: str, *names: str) -> str:
    """Return the id under the first of `names` (`_id` by default) that exists: a string or an integer."""
    names = names or ("_id",)
    found = next((entry[name] for name in names if name in entry), None)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if not isinstance(found, str) or not found:
        raise DocumentError(f"{where}: no {names[0]}")
    return found


def require_text(entry: Mapping[str, object], name: str, where: str) -> str:
    """Return a string that is not blank."""
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DocumentError(f"{where}: {name} is missing or empty")
    return value


def texts(value: object, name: str, where: str) -> list[str]:
    """Return a list of strings; a single string is a list of one, None is empty."""
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise DocumentError(f"{where}: {name} is not a list of strings")
    return found


def require_new_id(seen: dict[str, str], name: str, where: str) -> None:
    """Record a question's id. Raises DocumentError if it was used before."""
    if name in seen:
        raise DocumentError(
            f"{where}: question id {name!r} was used before, at {seen[name]}",
            hint="give every question a unique id",
        )
    seen[name] = where
