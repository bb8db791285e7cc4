"""Archives (`.gz`, `.zip`): each member is read by the reader of its kind, within limits.

Nothing is unpacked to disk, so member names cannot escape the archive; one that tries is reported.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import items_of, known_kind
from ketrag_fast.readers.ignored import reason
from ketrag_fast.readers.protocol import MOST_LINES, RATIO, UNPACKED, Item, SourceFile
from ketrag_fast.readers.zip_xml import open_package, safe_name
from ketrag_fast.records import replace
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import GENERATED, MEMBER

DEEPEST: Final = 3
"""Maximum nesting of archives in archives and messages in messages."""
MOST_OF_ONE: Final = 200_000_000
_PIECE: Final = 1 << 20


def read_gzip(file: SourceFile) -> Iterator[Item]:
    """Yield the documents of the compressed file, with the id of the `.gz` file."""
    _not_too_deep(file)
    packed = max(file.size(), 1)
    parts: list[bytes] = []
    size = 0
    try:
        with file.open() as stream, gzip.GzipFile(fileobj=stream) as unpacked:
            while piece := unpacked.read(_PIECE):
                size += len(piece)
                if size > MOST_OF_ONE:
                    raise DocumentError(f"the file unpacks to more than {MOST_OF_ONE:,} bytes")
                if size > UNPACKED and size > RATIO * packed:
                    raise DocumentError(f"decompression bomb: unpacks to more than {RATIO} times its size")
                file.count_unpacked(len(piece))
                parts.append(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DocumentError(f"damaged .gz file: {error}") from None
    name = file.id[: -len(".gz")] if file.id.lower().endswith(".gz") else file.id
    inner = replace(file, id=name, data=b"".join(parts), depth=file.depth + 1)
    for item in _member(inner):
        if isinstance(item, Failure) and item.code == MEMBER and item.document == name:
            yield file.failure(item.message)  # nothing else is in the file
        else:
            yield _prefix_name(item, name, file.id)


def _prefix_name(item: Item, name: str, packed: str) -> Item:
    """Return an item with the name of the `.gz` file in its id."""
    known = item.document if isinstance(item, Failure) else item.id
    if not known.startswith(name):
        return item
    whole = packed + known[len(name) :]
    return replace(item, document=whole) if isinstance(item, Failure) else replace(item, id=whole)


def read_zip(file: SourceFile) -> Iterator[Item]:
    """Yield the documents of all members that have a reader, by name, and a notice for each other one."""
    _not_too_deep(file)
    found = False
    unread = 0
    with open_package(file) as package:
        for name in sorted(package.names):
            base = name.rpartition("/")[2]
            if name.startswith("__MACOSX/"):
                continue
            if base.startswith("."):
                unread += 1
                if unread <= MOST_LINES:
                    yield replace(file, id=f"{file.id}/{name}", data=b"").unread("hidden")
                continue
            if not safe_name(name):
                found = True
                yield file.failure(f"member name outside the archive: {name!r:.200}")
                continue
            try:
                inner = file.member(name, package.bytes(name))
            except DocumentError as error:
                found = True
                yield replace(file, id=f"{file.id}/{name}").failure(str(error))
                if file.is_bomb():
                    return
                continue
            for item in _member(inner):
                if isinstance(item, Failure) and item.code == MEMBER and item.document == inner.id:
                    unread += 1
                    if unread > MOST_LINES:
                        continue
                else:
                    found = True
                yield item
    if unread > MOST_LINES:
        yield file.unread(f"{unread - MOST_LINES:,} further members without a reader")
    if not found:
        yield file.failure("the archive has no file in a supported format")


def _member(file: SourceFile) -> Iterator[Item]:
    try:
        kind = known_kind(file)
    except DocumentError as error:
        yield file.failure(str(error))
        return
    why = None if kind is None or file.generated else reason(file, kind)
    if why is not None:
        yield Failure(file.id, GENERATED, why)
    elif kind is not None:
        yield from items_of(file, kind)
    else:
        yield file.unread()


def _not_too_deep(file: SourceFile) -> None:
    if file.depth >= DEEPEST:
        raise DocumentError(f"archives are nested more than {DEEPEST} levels deep")
