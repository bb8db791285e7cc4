"""The files of a source: a file, a folder or a glob, each with the id that its document gets."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field
from pathlib import Path

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import is_inside
from ketrag_fast.types import Failure

_DATA_SET = ("corpus.jsonl", "queries.jsonl")
_INDEX_MARK = "index.sqlite"
_CITATIONS = "citations.tsv"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of a source in the order of their ids' bytes, and what is in the way."""

    files: tuple[tuple[str, Path], ...]
    failures: tuple[Failure, ...] = ()
    missing: bool = False


@dataclass(slots=True)
class _Walk:
    files: list[tuple[str, Path]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    links: list[tuple[str, Path]] = field(default_factory=list)


def is_glob(spec: str) -> bool:
    """Whether a source names files by a pattern: it does, unless a file has that very name."""
    return glob.has_magic(spec) and not os.path.lexists(spec)


def find(spec: str, *, follow: bool = False) -> SourceFiles:
    """All files of a source. Hidden ones and the folders of indexes are passed over.

    A folder in the layout of a data set (corpus.jsonl beside queries.jsonl) is its corpus alone. Links are
    followed where they lead to a place inside the source (for a glob: inside the folder before its first
    pattern), around loops once; those that lead out of it are failures unless `follow`.
    """
    if is_glob(spec):
        return _glob(spec, follow)
    path = Path(spec)
    if path.is_dir():
        if all((path / name).is_file() for name in _DATA_SET):
            corpus = path / _DATA_SET[0]
            if not follow and not is_inside(corpus, path):
                return SourceFiles((), (_outside(corpus.name),))
            return SourceFiles(((_DATA_SET[0], corpus),))
        walk = _Walk()
        _folder(path, "", walk, None if follow else path)
        while walk.links:  # real folders first, so that a file has its real path where it has one
            links, walk.links = sorted(walk.links), []
            for prefix, target in links:
                if follow or is_inside(target, path):
                    _folder(target, prefix, walk, None if follow else path)
                else:
                    walk.failures.append(_outside(prefix.rstrip("/")))
        return _sort_files(walk)
    if not os.path.lexists(spec):
        return SourceFiles((), missing=True)
    name = _name(path.name)
    if not path.is_file():
        return SourceFiles((), (Failure(name, "document", "neither a file nor a folder"),))
    return SourceFiles(((name, path),))


def _folder(folder: Path, prefix: str, walk: _Walk, root: Path | None) -> None:
    pending = [(folder, prefix)]
    while pending:
        here, start = pending.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in walk.seen:
                continue  # a loop of links, or a second way to the same folder
            walk.seen.add((status.st_dev, status.st_ino))
            entries = list(os.scandir(here))
        except OSError as error:
            walk.failures.append(Failure(start.rstrip("/") or str(here), "document", _why(error)))
            continue
        names = {entry.name for entry in entries}
        if _INDEX_MARK in names:
            continue
        beside = {_CITATIONS} if _DATA_SET[0] in names else set()  # is read with the corpus
        for entry in entries:
            if entry.name.startswith(".") or entry.name in beside:
                continue
            name = start + _name(entry.name)
            path = Path(entry.path)
            try:
                if entry.is_dir() and entry.is_symlink():
                    walk.links.append((f"{name}/", path))
                elif entry.is_dir():
                    pending.append((path, f"{name}/"))
                elif (
                    entry.is_file() and root is not None and entry.is_symlink() and not is_inside(path, root)
                ):
                    walk.failures.append(_outside(name))
                elif entry.is_file():
                    walk.files.append((name, path))
                elif entry.is_symlink():
                    walk.failures.append(Failure(name, "document", "a link that leads nowhere"))
            except OSError as error:
                walk.failures.append(Failure(name, "document", _why(error)))


def _outside(name: str) -> Failure:
    return Failure(name, "document", "a link that leads out of the source; --follow-links follows it")


def _glob(pattern: str, follow: bool) -> SourceFiles:
    base = Path(pattern)
    while glob.has_magic(str(base)):
        base = base.parent
    walk = _Walk()
    seen: set[tuple[str, str]] = set()
    # `**` follows links to folders, around a loop too: the shortest path to a file is kept.
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path.glob knows no absolute patterns
    for path in sorted(map(Path, matches), key=lambda match: (len(match.parts), os.fsencode(match))):
        relative = _relative(path, base)
        if any(part.startswith(".") and part != ".." for part in relative.split("/")):
            continue
        place = (os.path.realpath(path.parent), path.name)
        if path.is_dir() or place in seen:
            continue
        seen.add(place)
        if path.is_file() and not follow and not is_inside(path, base):
            walk.failures.append(_outside(relative))
        elif path.is_file():
            walk.files.append((relative, path))
        else:
            walk.failures.append(Failure(relative, "document", "neither a file nor a folder"))
    return _sort_files(walk)


def place_of(spec: str, name: str) -> Path | None:
    """The file of a source that the document of this id is from, or is a part of; None where it is gone."""
    base = Path(spec)
    while glob.has_magic(str(base)) and not base.exists():
        base = base.parent
    if base.is_file():
        return base
    parts = name.split("/")
    while parts:
        for last in dict.fromkeys((parts[-1], parts[-1].rpartition(":")[0])):
            path = base.joinpath(*parts[:-1], last) if last else base
            if path != base and path.is_file():
                return path
        parts.pop()
    return None


def _relative(path: Path, base: Path) -> str:
    try:
        return "/".join(map(_name, path.relative_to(base).parts))
    except ValueError:
        return "/".join(map(_name, path.parts))


def _sort_files(walk: _Walk) -> SourceFiles:
    files = sorted(set(walk.files), key=lambda item: os.fsencode(item[0]))
    failures = sorted(walk.failures, key=lambda failure: failure.document)
    return SourceFiles(tuple(files), tuple(failures))


def _name(name: str) -> str:
    """A file's name as text; bytes that are not UTF-8 are written as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def missing(label: str) -> DocumentError:
    """For a source that was asked for and is not there."""
    return DocumentError(f"there is no file or folder {label}", hint="check the path; nothing was changed")
