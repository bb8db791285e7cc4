"""Find the files of a source (a file, a folder or a glob) and the ids of their documents."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from ketrag_fast.base.globs import is_glob
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.ignored import IGNORE_FILES, Ignored, excluded
from ketrag_fast.readers.protocol import is_inside
from ketrag_fast.readers.repository import GIT, top_of
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import IGNORED

_DATA_SET = ("corpus.jsonl", "queries.jsonl")
_INDEX_MARK = "index.sqlite"
_CITATIONS = "citations.tsv"
_ADMINISTRATIVE = frozenset((GIT, *IGNORE_FILES, ".gitattributes", ".gitmodules", ".ketrag", ".DS_Store"))
"""Hidden files and folders that are not listed as left out."""
PATTERN = "ignored by exclude or a .gitignore"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of a source, ordered by the bytes of their ids, and what could not be read."""

    files: tuple[tuple[str, Path], ...]
    failures: tuple[Failure, ...] = ()
    missing: bool = False
    left_out: tuple[Failure, ...] = ()
    """Hidden files and folders, and those that `exclude` or a `.gitignore` leaves out."""
    folders: tuple[str, ...] | None = None
    """The folders that were listed, and files in them that decide what other files give (`.gitignore`); None
    for a glob."""
    linked: bool = True
    """Whether a symbolic link leads to some of them, so that several may be one file."""


@dataclass(slots=True)
class _Walk:
    files: list[tuple[str, Path]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    links: list[tuple[str, Path]] = field(default_factory=list)
    linked_files: list[tuple[str, Path]] = field(default_factory=list)
    excluded: Ignored = field(default_factory=Ignored)
    gitignore: bool = True
    left_out: list[Failure] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    linked: bool = False


def find(
    spec: str, *, follow: bool = False, exclude: str | None = None, gitignore: bool = True
) -> SourceFiles:
    """Return all files of a source except hidden files, index folders and ignored files.

    `exclude` are patterns as in `.gitignore`, separated by commas. With `gitignore`, the `.gitignore` files
    in a folder count too.

    In a data set folder (corpus.jsonl next to queries.jsonl) only the corpus is read. Symbolic links are
    followed if they point inside the source (for a glob: inside the folder before its first pattern), and
    loops are followed once; links that point outside are failures unless `follow` is set.
    """
    if is_glob(spec):
        return _glob(spec, follow, excluded(exclude))
    path = Path(spec)
    if path.is_dir():
        if all((path / name).is_file() for name in _DATA_SET):
            corpus = path / _DATA_SET[0]
            if not follow and not is_inside(corpus, path):
                return SourceFiles((), (_outside(corpus.name),))
            companions = (str(path / _CITATIONS),) if has_companion(str(corpus)) else ()
            return SourceFiles(((_DATA_SET[0], corpus),), folders=companions)
        walk = _Walk(excluded=excluded(exclude), gitignore=gitignore)
        if gitignore:
            walk.excluded, above = walk.excluded.below(path)
            walk.folders += map(str, above)
        _folder(path, "", walk, None if follow else path)
        while walk.links:  # real folders first, so that a file gets its real path if it has one
            links, walk.links = sorted(walk.links), []
            for prefix, target in links:
                if follow or is_inside(target, path):
                    _folder(target, prefix, walk, None if follow else path)
                else:
                    walk.failures.append(_outside(prefix.rstrip("/")))
        _add_linked_files(walk, path)
        return replace(_sort_files(walk), folders=tuple(walk.folders), linked=walk.linked)
    if not os.path.lexists(spec):
        return SourceFiles((), missing=True)
    name = _name(path.name)
    if not path.is_file():
        return SourceFiles((), (Failure(name, "document", "neither a file nor a folder"),))
    return SourceFiles(((name, path),), folders=())


def _folder(folder: Path, prefix: str, walk: _Walk, root: Path | None) -> None:
    pending = [(folder, prefix, walk.excluded)]
    while pending:
        here, start, ignored = pending.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in walk.seen:
                continue  # a loop of links, or a second way to the same folder
            walk.seen.add((status.st_dev, status.st_ino))
            walk.folders.append(str(here))
            entries = list(os.scandir(here))
        except OSError as error:
            walk.failures.append(Failure(start.rstrip("/") or str(here), "document", _why(error)))
            continue
        names = {entry.name for entry in entries}
        if _INDEX_MARK in names:
            continue
        if walk.gitignore:
            ignored, files = ignored.within(here, start, root, names)
            walk.folders += map(str, files)
        companions = {_CITATIONS} if _DATA_SET[0] in names else set()  # read with the corpus
        walk.folders += [str(here / name) for name in companions & names]
        for entry in entries:
            name = start + _name(entry.name)
            if entry.name.startswith("."):
                if entry.name not in _ADMINISTRATIVE:
                    walk.left_out.append(Failure(name, IGNORED, "hidden"))
                continue
            if entry.name in companions:
                continue
            path = Path(entry.path)
            walk.linked |= entry.is_symlink()
            try:
                if ignored.matches(name, folder=entry.is_dir()):
                    walk.left_out.append(Failure(name, IGNORED, PATTERN))
                elif entry.is_dir() and entry.is_symlink():
                    walk.links.append((f"{name}/", path))
                elif entry.is_dir():
                    pending.append((path, f"{name}/", ignored))
                elif (
                    entry.is_file() and root is not None and entry.is_symlink() and not is_inside(path, root)
                ):
                    walk.failures.append(_outside(name))
                elif entry.is_file():
                    (walk.linked_files if entry.is_symlink() else walk.files).append((name, path))
                elif entry.is_symlink():
                    walk.failures.append(Failure(name, "document", "broken symbolic link"))
            except OSError as error:
                walk.failures.append(Failure(name, "document", _why(error)))


def _add_linked_files(walk: _Walk, source: Path) -> None:
    """Add the links to files; in a repository, without those to its other files, which are read once."""
    names = {}
    if walk.linked_files and top_of(str(source)) is not None:
        names = {_real_path(path): name for name, path in walk.files}
    for name, path in walk.linked_files:
        other = names.get(_real_path(path))
        if other is None:
            walk.files.append((name, path))
        else:
            walk.left_out.append(Failure(name, IGNORED, f"a link to {other}"))


def _real_path(path: Path) -> str:
    """Return a path after all links, or the path itself if a link was replaced meanwhile."""
    try:
        return os.path.realpath(path)
    except OSError:
        return str(path)


def _outside(name: str) -> Failure:
    return Failure(name, "document", "symbolic link to a path outside the source; --follow-links follows it")


def _glob(pattern: str, follow: bool, ignored: Ignored) -> SourceFiles:
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
        place = (_real_path(path.parent), path.name)
        if path.is_dir() or place in seen:
            continue
        seen.add(place)
        if ignored.matches(relative):
            walk.left_out.append(Failure(relative, IGNORED, PATTERN))
        elif path.is_file() and not follow and not is_inside(path, base):
            walk.failures.append(_outside(relative))
        elif path.is_file():
            walk.files.append((relative, path))
        else:
            walk.failures.append(Failure(relative, "document", "neither a file nor a folder"))
    return _sort_files(walk)


def has_companion(path: str) -> bool:
    """Return whether another file is read with a file, which may change while the file does not."""
    folder, name = os.path.split(path)
    return name == _DATA_SET[0] and os.path.lexists(os.path.join(folder, _CITATIONS))  # noqa: PTH118


def _relative(path: Path, base: Path) -> str:
    try:
        return "/".join(map(_name, path.relative_to(base).parts))
    except ValueError:
        return "/".join(map(_name, path.parts))


def _sort_files(walk: _Walk) -> SourceFiles:
    files = sorted(set(walk.files), key=lambda item: os.fsencode(item[0]))
    failures = sorted(walk.failures, key=lambda failure: failure.document)
    left_out = sorted(walk.left_out, key=lambda one: one.document)
    return SourceFiles(tuple(files), tuple(failures), left_out=tuple(left_out))


def _name(name: str) -> str:
    """Return a file name as text, with escapes for bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def missing(label: str) -> DocumentError:
    """Return the error for a source that does not exist."""
    return DocumentError(f"no such file or folder: {label}", hint="check the path; nothing was changed")
