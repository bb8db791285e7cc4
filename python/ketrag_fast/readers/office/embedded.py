"""Files inside Office files: embedded ones are read as members, pictures and other objects are reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import items_of, known_kind
from ketrag_fast.readers.archives import DEEPEST
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.zip_xml import Package, relations
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import EMBEDDED

_KINDS: Final = {
    "image": "picture",
    "video": "video",
    "audio": "sound",
    "media": "video or sound",
    "oleObject": "embedded object",
    "vbaProject": "macro project",
}
"""Relations of parts that are not read, and what they are called."""
_FILES: Final = ("package", "aFChunk")
"""Relations of embedded files."""
_PASSED: Final = re.compile(r"(?:^|/)(?:slideLayouts|slideMasters|notesMasters|handoutMasters|theme|charts)/")
"""Folders whose pictures decorate every page, and whose embedded files repeat the data of a chart."""
_LISTED: Final = 5
_OLE: Final = b"\xd0\xcf\x11\xe0"


def embedded_items(file: SourceFile, package: Package) -> Iterator[Item]:
    """Yield the documents of embedded files, and one notice that names the parts which are not read."""
    parts: dict[str, str] = {}
    for name in package.names:
        folder, _, rest = name.rpartition("_rels/")
        if not rest.endswith(".rels") or not folder or _PASSED.search(name):
            continue
        try:
            found = relations(package, folder + rest.removesuffix(".rels"))
        except DocumentError:
            continue  # the reader of the part reports it
        parts.update({path: kind for kind, path in found.values() if kind in _KINDS or kind in _FILES})
    unread: list[tuple[str, str]] = []
    for path, kind in sorted(parts.items()):
        name = path.rpartition("/")[2]
        if path not in package:
            continue
        if kind in _KINDS and kind != "oleObject":
            unread.append((_KINDS[kind], path))
        elif file.depth >= DEEPEST:
            yield file.member(name, b"").failure(f"embedded files are nested more than {DEEPEST} levels deep")
        else:
            try:
                name, data = native_file(name, package.bytes(path))
                inner = file.member(name, data)
                known = known_kind(inner)
            except DocumentError as error:
                yield file.member(name, b"").failure(str(error))
                continue
            if known is not None:
                yield from items_of(inner, known)
            elif kind in _KINDS:
                unread.append((_KINDS[kind], name))
            else:
                yield inner.unread()
    yield from unread_parts(file, unread)


def native_file(name: str, data: bytes) -> tuple[str, bytes]:
    """Return the name and content of the file in an OLE object; the object itself if it has none."""
    if not data.startswith(_OLE):
        return name, data
    try:
        import olefile

        with olefile.OleFileIO(data) as storage:
            stem = name.rpartition(".")[0] or name
            if storage.exists("Workbook"):
                return f"{stem}.xls", data
            if storage.exists("Package"):
                return stem, storage.openstream("Package").read()
            if storage.exists("\1Ole10Native"):
                return _packed(name, storage.openstream("\1Ole10Native").read())
    except ImportError:
        pass
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the parser raises what it meets; a damaged object is reported as unread
        return name, data
    return name, data


def _packed(name: str, data: bytes) -> tuple[str, bytes]:
    """Return the file that Windows packed into an object: label, path, temporary path, size, content."""
    label, _, rest = data[6:].partition(b"\0")
    _, _, rest = rest.partition(b"\0")
    begin = 8 + int.from_bytes(rest[4:8], "little")
    size = int.from_bytes(rest[begin : begin + 4], "little")
    content = rest[begin + 4 : begin + 4 + size]
    own = label.decode("cp1252", "replace").replace("\\", "/").rpartition("/")[2].strip(" .")[:200]
    return (own or name, content) if content else (name, data)


def unread_parts(file: SourceFile, parts: Sequence[tuple[str, str]]) -> Iterator[Item]:
    """Yield one notice for parts that are not read: what each of them is, and its path."""
    kinds: dict[str, list[str]] = {}
    for what, path in sorted(parts):
        kinds.setdefault(what, []).append(path.rpartition("/")[2])
    if kinds:
        yield Failure(file.id, EMBEDDED, f"not read: {'; '.join(_counted(*one) for one in kinds.items())}")


def _counted(what: str, names: Sequence[str]) -> str:
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return f"{len(names):,} {what}{'s' * (len(names) > 1)} ({listed})"
