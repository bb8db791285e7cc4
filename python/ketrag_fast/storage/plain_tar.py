"""Reads a tar archive of plain files, member by member, and refuses everything else.

Python's `tarfile` follows whatever an archive requests: sparse files that expand to any size, links,
devices, headers that are read into memory completely. Here a member is a regular file whose bytes are in
the archive, so that nothing that is read is larger than the archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final

_BLOCK: Final = 512
_EMPTY: Final = bytes(_BLOCK)
_LONGEST_HEADER: Final = 1 << 16
"""Bytes of a pax header, which holds a long name or a large size."""
_KINDS: Final = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
    b"7": "a contiguous file",
    b"S": "a sparse file",
    b"L": "a GNU long name",
    b"K": "a GNU long link",
    b"M": "a part of another volume",
    b"V": "a volume label",
    b"D": "a GNU folder",
    b"g": "a global header",
}
_KNOWN: Final = frozenset({"path", "size"})
"""Entries of a pax header that a bundle may have."""


class NotPlain(ValueError):
    """The archive has something other than plain files; the message names it."""


@dataclass(frozen=True, slots=True)
class TarEntry:
    """A member: its name, its size, and its bytes, which must be read before the next member is."""

    name: str
    size: int
    stream: _Bytes


def entries(raw: IO[bytes]) -> Iterator[TarEntry]:
    """Yield the members of an archive. Raises NotPlain, also for a truncated archive."""
    while (header := _read(raw, _BLOCK)) != _EMPTY:
        kind = _kind(header)
        extra: dict[str, str] = {}
        if kind == b"x":
            extra = _pax(raw, _number(header[124:136]))
            header = _read(raw, _BLOCK)
            if _kind(header) == b"x":
                raise NotPlain("two headers follow each other")
        name = extra.get("path") or _name(header)
        size = _decimal(extra["size"]) if "size" in extra else _number(header[124:136])
        stream = _Bytes(raw, size)
        yield TarEntry(name, size, stream)
        stream.skip()
        _read(raw, -size % _BLOCK)


class _Bytes:
    """The bytes of one member."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw = raw
        self._left = size

    def read(self, count: int) -> bytes:
        """Return up to `count` bytes; empty at the end. Raises NotPlain if the archive is truncated."""
        data = self._raw.read(min(count, self._left))
        if not data and self._left and count:
            raise NotPlain("it is cut short")
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Read to the end of the member."""
        while self.read(1 << 20):
            pass


def _read(raw: IO[bytes], count: int) -> bytes:
    data = raw.read(count)
    if len(data) != count:
        raise NotPlain("it is cut short")
    return data


def _kind(header: bytes) -> bytes:
    """Return the kind of a member, `0` or `x`; raises NotPlain for others and for invalid headers."""
    total = sum(header[:148]) + 8 * 32 + sum(header[156:])
    if header[257:262] != b"ustar" or _number(header[148:156]) != total:
        raise NotPlain("a header is damaged, or it is not a tar archive")
    kind = header[156:157]
    if kind == b"\0":
        return b"0"
    if kind not in (b"0", b"x"):
        raise NotPlain(f"it holds {_KINDS.get(kind, f'a member of kind {kind!r}')}")
    return kind


def _number(field: bytes) -> int:
    text = field.strip(b" \0")
    if not all(48 <= digit < 56 for digit in text):
        raise NotPlain("a number in a header is not octal")
    return int(text or b"0", 8)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise NotPlain("a size in a header is not a number")
    return int(text)


def _name(header: bytes) -> str:
    parts = [header[345:500].split(b"\0", 1)[0], header[:100].split(b"\0", 1)[0]]
    return _text(b"/".join(part for part in parts if part))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotPlain("a name is not UTF-8") from None


def _pax(raw: IO[bytes], size: int) -> dict[str, str]:
    """Return the records of a pax header: lines of `LENGTH KEYWORD=VALUE`."""
    if size > _LONGEST_HEADER:
        raise NotPlain(f"a header has {size:,} bytes")
    data = _read(raw, size)
    _read(raw, -size % _BLOCK)
    found: dict[str, str] = {}
    while data:
        length, space, _ = data.partition(b" ")
        count = _decimal(_text(length))
        record = data[len(length) + 1 : count - 1]
        if not space or data[count - 1 : count] != b"\n":
            raise NotPlain("a header is damaged")
        keyword, equals, value = _text(record).partition("=")
        if not equals or keyword not in _KNOWN or keyword in found:
            raise NotPlain(f"a header has the entry {keyword!r:.40}")
        found[keyword] = value
        data = data[count:]
    return found
