"""Read zip archives of XML (DOCX, PPTX, XLSX, ODT, EPUB) within limits and without unpacking to disk.

Sizes are counted while reading. The declared size of a member is checked first: reading ends there.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ketrag_fast.base.safe_xml import DEEPEST, Handler, parse
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import RATIO, UNPACKED, SourceFile

MOST_MEMBERS: Final = 20_000
MOST_BYTES: Final = 2_000_000_000
"""Maximum number of unpacked bytes read from one archive."""
MOST_OF_ONE: Final = 200_000_000
"""Maximum size of a member that is read into memory."""
_PIECE: Final = 1 << 18
_NAME = re.compile(r"[^/\\:\0][^\\:\0]*")


class Package:
    """An open archive."""

    def __init__(self, archive: zipfile.ZipFile, file: SourceFile) -> None:
        self._archive = archive
        self._file = file
        self._read = 0
        self._infos = {info.filename: info for info in archive.infolist()}
        if len(self._infos) > MOST_MEMBERS:
            raise DocumentError(
                f"the archive has {len(self._infos):,} members; the maximum is {MOST_MEMBERS:,}"
            )

    @property
    def names(self) -> list[str]:
        """Names of the members that are not folders, in archive order."""
        return [name for name in self._infos if not name.endswith("/")]

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def pieces(self, name: str, *, is_counted: bool = True) -> Iterator[bytes]:
        """Yield the bytes of a member. Raises DocumentError for a bomb, damage or encryption.

        A member that is read again later is counted then, not now.
        """
        info = self._infos.get(name)
        if info is None:
            raise DocumentError(f"the archive has no {name}")
        if info.flag_bits & 1:
            raise DocumentError("encrypted: it needs a password")
        if info.file_size > UNPACKED and info.file_size > RATIO * max(info.compress_size, 1):
            raise DocumentError(f"zip bomb: {name} unpacks to more than {RATIO} times its size")
        self._file.count_unpacked(0)
        with _sound(name), self._archive.open(info) as stream:  # reads no more than the declared size
            while piece := stream.read(_PIECE):
                self._read += len(piece) * is_counted
                self._file.count_unpacked(len(piece) * is_counted)
                if self._read > MOST_BYTES:
                    raise DocumentError(f"the archive unpacks to more than {MOST_BYTES:,} bytes")
                yield piece

    def bytes(self, name: str) -> bytes:
        """Return the content of a member."""
        parts: list[bytes] = []
        size = 0
        for piece in self.pieces(name):
            size += len(piece)
            if size > MOST_OF_ONE:
                raise DocumentError(f"{name} unpacks to more than {MOST_OF_ONE:,} bytes")
            parts.append(piece)
        return b"".join(parts)

    def xml(self, name: str, handler: Handler, *, deepest: int = DEEPEST) -> None:
        """Parse a member as XML with at most `deepest` nested elements."""
        parse(self.pieces(name), handler, name, deepest=deepest)


@contextmanager
def open_package(file: SourceFile) -> Iterator[Package]:
    """Open the archive in a file."""
    with (
        _sound(file.path.name if file.data is None else file.id),
        file.open() as stream,
        zipfile.ZipFile(stream) as archive,
    ):
        yield Package(archive, file)


@contextmanager
def _sound(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        raise DocumentError(f"damaged archive: {name}: {error}") from None
    except (KeyError, IndexError, OverflowError) as error:
        raise DocumentError(f"damaged archive: {name}: {error!r}") from None


class _Rels(Handler):
    def __init__(self, base: str) -> None:
        self.found: dict[str, tuple[str, str]] = {}
        self._base = base

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "")
            whole = target.lstrip("/") if target.startswith("/") else posixpath.join(self._base, target)
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found[attributes.get("Id", "")] = kind, posixpath.normpath(whole)


def main_part(package: Package, usual: str) -> str:
    """Return the path of the main part of an Office file: `usual` if no relation of the package names one."""
    found = (path for kind, path in relations(package, "").values() if kind == "officeDocument")
    return next(found, usual)


def relations(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """Return the internal relations of a part of an Office file: id -> (kind, path)."""
    folder, _, name = part.rpartition("/")
    own = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
    if own not in package:
        return {}
    handler = _Rels(folder)
    package.xml(own, handler)
    return handler.found


class _Core(Handler):
    _NAMES: Final = {
        "title": "title",
        "creator": "author",
        "subject": "subject",
        "keywords": "keywords",
        "created": "date",
        "language": "lang",
        "description": "description",
        "date": "date",
        "creation-date": "date",
        "initial-creator": "author",
        "keyword": "keywords",
    }

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._name = ""
        self._parts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._name, self._parts = self._NAMES.get(name, ""), []

    def text(self, text: str) -> None:
        if self._name:
            self._parts.append(text)

    def end(self, name: str) -> None:
        value = " ".join("".join(self._parts).split())[:1000]
        if self._name and value:
            self.found.setdefault(self._name, value)
        self._name = ""


def core_properties(package: Package, part: str) -> tuple[dict[str, Any], str]:
    """Return metadata and title of an Office file, empty if they cannot be read."""
    if part not in package:
        return {}, ""
    handler = _Core()
    try:
        package.xml(part, handler)
    except DocumentError:
        return {}, ""
    found: dict[str, Any] = dict(handler.found)
    return found, found.pop("title", "")


def safe_name(name: str) -> bool:
    """Return whether a member's name stays inside its archive."""
    return bool(_NAME.fullmatch(name)) and ".." not in name.split("/")
