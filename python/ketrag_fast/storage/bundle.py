"""An index as one file: its tables, its current generation and optionally its embedding model.

A tar archive of plain files whose first member, `bundle.json`, lists the others in order, with sizes and
hashes. An archive that differs from the list is refused: only listed names are written, into a new folder
that becomes the index once it is complete. At most the declared bytes are written, which cannot exceed the
size of the archive, and the disk must have room for them first.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import stat
import tarfile
import tempfile
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

from ketrag_fast.errors import (
    ConfigError,
    IndexDamaged,
    IndexMissing,
    ReadOnly,
    StorageFull,
)
from ketrag_fast.records import dataclass
from ketrag_fast.storage.confirmations import draw_identity
from ketrag_fast.storage.durable import make_folder, sync_folder, sync_folders, write_file, write_json
from ketrag_fast.storage.generation import current_number, open_generation
from ketrag_fast.storage.io_errors import unreadable, writing
from ketrag_fast.storage.layout import FORMAT, Layout, incompatible
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.manifest import count, parse_json, text
from ketrag_fast.storage.tables import Tables

LIST: Final = "bundle.json"
KIND: Final = "ketrag-fast bundle"
_MODEL: Final = "model"
_LONGEST_LIST: Final = 8 << 20
"""Maximum size of the list in bytes; a real list has about 200 bytes per file."""
_RECORD: Final = ("spec", "fingerprint")
_PIECE: Final = 1 << 20
_LONGEST_HEADER: Final = 1 << 16
"""Maximum size in bytes of a pax header, which holds a long name or a large size."""
_ENTRIES: Final = frozenset({"path", "size"})
"""Pax header entries that are allowed in a bundle."""


class _NotPlain(ValueError):
    """The archive contains something other than plain files; the message names it."""


class _PlainFile(tarfile.TarInfo):
    """A member of an archive; any other than a plain file is refused before anything of it is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header. Raises _NotPlain unless it is that of a plain file, or a short pax header."""
        if len(buf) != tarfile.BLOCKSIZE:
            raise _NotPlain("it is cut short")
        try:
            info = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError:
            if any(buf):
                raise _NotPlain("a header is damaged, or it is not a tar archive") from None
            raise  # the end
        is_long = info.type == tarfile.XHDTYPE and info.size > _LONGEST_HEADER
        if info.size < 0 or is_long:
            raise _NotPlain(f"a header declares {info.size:,} bytes")
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.XHDTYPE):
            kind = "a sparse file" if info.type == tarfile.GNUTYPE_SPARSE else "a link, folder or device"
            raise _NotPlain(f"it holds {kind}")
        return info


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class CarriedModel:
    """The files of an embedding model by name, the name that the index uses for it, and its fingerprint."""

    spec: str
    fingerprint: str
    files: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class _BundleListing:
    current: str
    members: list[_Member]
    model: Mapping[str, str] | None


def bundle(
    layout: Layout,
    file: Path,
    *,
    replace: bool = False,
    model: CarriedModel | None = None,
) -> int:
    """Write the index and optionally its `model` into one file; return its size. Builds wait, readers do not.

    Raises IndexMissing, IndexDamaged, IndexLocked during a build, ConfigError if the file exists,
    StorageFull.
    """
    layout.require()
    if file.exists() and not replace:
        raise ConfigError(f"{file} already exists", hint="name another file, or give --replace")
    with builder_lock(layout), writing(layout.root), _scratch(layout) as scratch:
        number = current_number(layout)
        if number is None:
            raise IndexMissing(f"the index in {layout.root} was never finished", hint="run `ketrag index`")
        if not layout.tables.is_file():
            raise IndexDamaged(f"{layout.tables} is missing", hint="`ketrag index` reads the sources again")
        with Tables(layout.tables, read_only=True) as opened:
            opened.verify()
        tables = Path(scratch) / "index.sqlite"
        with writing(tables), closing(sqlite3.connect(layout.tables)) as db:
            db.execute("VACUUM INTO ?", (str(tables),))
        with writing(tables), closing(sqlite3.connect(tables)) as db:  # elsewhere there are other files
            db.execute("DROP TABLE IF EXISTS files")
            db.execute("VACUUM")
        generation = layout.generation(number)
        open_generation(generation, "full")  # a damaged index is not bundled
        places = {"index.sqlite": tables}
        for path in sorted(p for p in generation.rglob("*") if p.is_file()):
            places[f"{generation.name}/{path.relative_to(generation).as_posix()}"] = path
        if model is not None:
            places.update((f"{_MODEL}/{name}", path) for name, path in sorted(model.files.items()))
        members = [_Member(name, path.stat().st_size, digest_of(path)) for name, path in places.items()]
        about: dict[str, Any] = {
            "kind": KIND,
            "format": FORMAT,
            "current": generation.name,
            "files": [{"name": m.name, "size": m.size, "blake2b": m.digest} for m in members],
        }
        if model is not None:
            about["model"] = {"spec": model.spec, "fingerprint": model.fingerprint}
        temporary = file.with_name(file.name + ".tmp")
        with writing(temporary):
            try:
                with temporary.open("wb") as raw:
                    _pack(raw, about, members, places)
                    raw.flush()
                    os.fsync(raw.fileno())
                temporary.replace(file)
            finally:
                temporary.unlink(missing_ok=True)
        sync_folder(file.absolute().parent)
    return file.stat().st_size


def _scratch(layout: Layout) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder; if this process is killed, the next build deletes it."""
    layout.work.mkdir(mode=0o700, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=layout.work, ignore_cleanup_errors=True)


def _pack(raw: IO[bytes], about: Any, members: list[_Member], places: dict[str, Path]) -> None:
    data = json.dumps(about, ensure_ascii=False, indent=1).encode()
    with tarfile.open(fileobj=raw, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_header(LIST, len(data)), io.BytesIO(data))
        for member in members:
            with places[member.name].open("rb") as stream:
                tar.addfile(_header(member.name, member.size), stream)


def unbundle(file: Path, layout: Layout, *, check: Callable[[Layout], None] | None = None) -> None:
    """Create an index from the file in a folder that is missing or empty.

    `check` is called with the unpacked folder before it becomes the index, and raises to refuse it.

    Raises ReadOnly if the folder is not empty, IndexDamaged if the file is not what `bundle` wrote,
    IndexIncompatible for another format, StorageFull if the disk lacks the declared space.
    """
    root = layout.root
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ReadOnly(f"{root} already exists", hint="name a new or empty folder with -i/--index")
    parent = root.absolute().parent
    with writing(parent):
        if not parent.is_dir():
            with suppress(FileExistsError):
                make_folder(parent)
        place = Path(tempfile.mkdtemp(dir=parent, prefix=".unbundle-"))
    try:
        listed = _unpack(file, place)
        with writing(root):
            (place / "work").mkdir(mode=0o700)
            write_file(place / "CURRENT", f"{listed.current}\n".encode("ascii"))
            if listed.model is not None:
                files = {m.name: m.digest for m in listed.members if m.name.startswith(f"{_MODEL}/")}
                write_json(Layout(place).model_record, {**listed.model, "files": files})
            _require_generation(file, place / listed.current)
            draw_identity(Layout(place))
            if check is not None:
                check(Layout(place))
            sync_folders(place)
            if root.exists():
                root.rmdir()
            place.rename(root)
            sync_folder(parent)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _unpack(file: Path, place: Path) -> _BundleListing:
    try:
        raw = file.open("rb")
    except OSError as error:
        raise unreadable(error, file) from error
    try:
        options: Any = {"tarinfo": _PlainFile, "bufsize": _PIECE, "encoding": "utf-8", "errors": "strict"}
        with raw, tarfile.open(fileobj=raw, mode="r|", **options) as tar:
            listed = _list(file, tar, tar.next())
            _require_room(file, raw, place, sum(m.size for m in listed.members))
            for member in listed.members:
                entry = tar.next()
                if entry is None or (entry.name, entry.size) != (member.name, member.size):
                    raise _bundle_damaged(file, f"{member.name!r:.200} is not at its listed position")
                _copy(_stream(tar, entry), place / member.name, member, file)
            if tar.next() is not None:
                raise _bundle_damaged(file, "it has members that are not listed")
            return listed
    except OSError as error:
        raise unreadable(error, file) from error
    except (tarfile.TarError, ValueError, RecursionError) as error:
        raise _bundle_damaged(file, error) from error


def _stream(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    """Return the bytes of a member. Raises _NotPlain for one with unknown entries in its header."""
    stream = tar.extractfile(entry)
    if stream is None or not entry.pax_headers.keys() <= _ENTRIES:
        raise _NotPlain(f"a header has the entries {sorted(entry.pax_headers)!r:.80}")
    return stream


def _require_generation(file: Path, folder: Path) -> None:
    """Raise IndexDamaged if the generation's folder lacks a file that its manifest lists."""
    try:
        open_generation(folder, "sizes")
    except IndexDamaged as error:
        raise _bundle_damaged(file, error.message.replace(f"{folder.parent}{os.sep}", "")) from error


def _require_room(file: Path, raw: IO[bytes], place: Path, total: int) -> None:
    """Raise IndexDamaged if the list declares more bytes than the file has, StorageFull if they don't fit."""
    about = os.fstat(raw.fileno())
    if stat.S_ISREG(about.st_mode) and total > about.st_size:
        raise _bundle_damaged(file, f"its list declares {total:,} bytes, and it has {about.st_size:,}")
    with writing(place):
        free = shutil.disk_usage(place).free
    if total > free:
        raise StorageFull(
            f"{file} holds {total:,} bytes, and the disk of {place.parent} has {free:,} left",
            hint="free some space, or name a folder on another disk with -i/--index",
        )


def _list(file: Path, tar: tarfile.TarFile, entry: tarfile.TarInfo | None) -> _BundleListing:
    if entry is None or entry.name != LIST or entry.size > _LONGEST_LIST:
        raise _bundle_damaged(file, f"it does not begin with {LIST}")
    data = _stream(tar, entry).read(_LONGEST_LIST)
    try:
        about = parse_json(data)
        if not isinstance(about, dict) or about.get("kind") != KIND:
            raise _bundle_damaged(file, "it is not a bundle of an index")
        found = count(about["format"])
        if found != FORMAT:
            raise incompatible(file, found)
        if not isinstance(about["files"], list):
            raise ValueError("`files` is not a list")
        members = [_Member(text(f["name"]), count(f["size"]), text(f["blake2b"])) for f in about["files"]]
        current = text(about["current"])
        model = {name: text(about["model"][name]) for name in _RECORD} if "model" in about else None
        if not re.fullmatch(r"gen-[0-9]{6,18}", current):
            raise ValueError("`current` is not the name of a generation")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _bundle_damaged(file, f"its list is invalid: {error!s:.200}") from error
    if Layout(Path()).generation(int(current.removeprefix("gen-"))).name != current:
        raise _bundle_damaged(file, "its list does not name a generation")
    _require_names(file, members, {"index.sqlite", current, *([_MODEL] if model is not None else [])})
    return _BundleListing(current, members, model)


def _require_names(file: Path, members: Sequence[_Member], allowed: Collection[str]) -> None:
    """Raise IndexDamaged unless all members are distinct files of an index, none of them also a folder."""
    names = [member.name for member in members]
    for name in names:
        parts = name.split("/")
        inside = len(parts) > 1 or name == "index.sqlite"
        plain = all(part not in ("", ".", "..") for part in parts) and not {"\\", "\0"} & {*name}
        if not plain or parts[0] not in allowed or not inside:
            raise _bundle_damaged(file, f"its list names a file outside of the index: {name!r:.100}")
    # Some file systems treat names that differ in case or Unicode normalisation as the same.
    folded = [unicodedata.normalize("NFC", name).casefold() for name in names]
    folders = {str(folder) for name in folded for folder in PurePosixPath(name).parents}
    if len({*folded}) < len(names) or folders & {*folded}:
        raise _bundle_damaged(file, "its list has two files of one name, or a file that is also a folder")
    if "index.sqlite" not in names:
        raise _bundle_damaged(file, "its list lacks index.sqlite")


def _copy(stream: IO[bytes], to: Path, member: _Member, file: Path) -> None:
    found = hashlib.blake2b(digest_size=32)
    with writing(to):
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with to.open("xb") as out:
            while piece := stream.read(_PIECE):
                found.update(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
    if found.hexdigest() != member.digest:
        raise _bundle_damaged(file, f"{member.name} is altered")


def digest_of(path: Path) -> str:
    """Return the lower-case hexadecimal BLAKE2b of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _header(name: str, size: int) -> tarfile.TarInfo:
    """Return a tar header that reveals nothing about this machine or its users."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info


def _bundle_damaged(file: Path, what: object) -> IndexDamaged:
    return IndexDamaged(f"{file} is not a bundle or is damaged: {what}", hint="copy or create it again")
