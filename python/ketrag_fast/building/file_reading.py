"""Read the files of sources in processes with limits, and check the documents in them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.building.sources import Sources, absolute, split_sources
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import Item, SourceFile, SourceFiles, find, is_glob, known_kind, single
from ketrag_fast.readers.ignored import reason
from ketrag_fast.readers.ocr import check_ocr
from ketrag_fast.readers.sandbox import UNCHANGED, Apart, ReadJob
from ketrag_fast.storage.document_hashes import content_of
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import FORMAT, GENERATED
from ketrag_fast.types.locations import problem_of

_LARGEST: Final = 1_000_000_000  # SQLite's limit for one text
_MOST_PROCESSES: Final = 16
_NAMED: Final = 3
"""Files that the error about ignored files names."""


def read_sources(sources: Sources, settings: Settings) -> Iterator[Item]:
    """Yield the documents and failures that a build would read from `sources`, without storing anything.

    Raises DocumentError if a source is missing.
    """
    paths, documents = split_sources(sources)
    seen: set[str] = set()
    selection, ids = FileSelection(), UniqueIds()
    with sandbox_pool(settings) as sandbox:
        for number, path in enumerate(paths):
            source = SourceRow(number, "path", path, absolute(path))
            files = ids.rename(source, find_files(source.spec, settings))
            yield from files.failures
            for _, items in sandbox.read(read_jobs(files, settings, selection)):
                yield from (usable_item(item, seen) for item in single(items))
            yield from selection.failures
            yield from (one for one in selection.skipped if one.code == GENERATED)
            selection.failures, selection.skipped = [], []
    yield from (usable_item(item, seen) for item in documents or ())


def find_files(spec: str, settings: Settings) -> SourceFiles:
    """Return the files of a source.

    Raises DocumentError if all of them are ignored, BackendMissing or ConfigError if `ocr` cannot be used.
    """
    check_ocr(settings.ocr)
    files = find(spec, follow=settings.follow_links, exclude=settings.exclude, gitignore=settings.gitignore)
    if files.ignored and not files.files:
        raise _all_ignored(spec, settings)
    return files


def _all_ignored(spec: str, settings: Settings) -> DocumentError:
    """Return the error for a source whose files are all left out: it names some of them, and what does it."""
    causes = ["exclude"] if settings.exclude else []
    hints = ["change the patterns of --exclude"] if settings.exclude else []
    if settings.gitignore and not is_glob(spec):
        causes.append("a .gitignore")
        hints.append("-o gitignore=false reads what .gitignore names")
    files = [name for name, _ in find(spec, follow=settings.follow_links, gitignore=False).files]
    names = f": {', '.join(files[:_NAMED])}" if files else ""
    if len(files) > _NAMED:
        names += f" and {len(files) - _NAMED:,} more"
    return DocumentError(
        f"{spec}: every file is left out by {' or '.join(causes)}{names}", hint="; ".join(hints)
    )


def usable_item(item: Item, seen: set[str]) -> Item:
    """Return an item that can be indexed, or why it cannot; `seen` are the ids so far."""
    if isinstance(item, Failure):
        return item
    problem = check_document(item)[1] or ("the id is already in use" if item.id in seen else None)
    if problem is not None:
        return Failure(str(item.id), "document", problem)
    seen.add(item.id)
    return item


class FileSelection:
    """Select the files of a source to read, and record why others are left out.

    Attributes:
        failures: Unreadable files, and a source that is itself a file of an unknown format.
        skipped: Other files of unknown formats, and generated files.
        named: Id of the file that is the source itself.
    """

    def __init__(self, named: str | None = None, skipped: list[Failure] | None = None) -> None:
        self.named = named
        self.failures: list[Failure] = []
        self.skipped: list[Failure] = [] if skipped is None else skipped
        self._paths: set[str] = set()

    def is_repeated(self, path: str) -> bool:
        """Return whether an absolute path was selected before; from now on it is."""
        is_known = path in self._paths
        self._paths.add(path)
        return is_known

    def is_elsewhere(self, file: SourceFile, kind: str) -> bool:
        """Return whether a file belongs to another shard."""
        return False

    def is_unchanged(self, file: SourceFile) -> bool:
        """Return whether the stored documents of a file are what reading it again would give."""
        return False

    def is_reported(self, path: Path) -> bool:
        """Return whether a file of an unknown format is added to `skipped`."""
        return True


def read_jobs(files: SourceFiles, settings: Settings, selection: FileSelection) -> Iterator[ReadJob]:
    """Yield the files that a reader supports, with their kinds; note all others in `selection`."""
    for name, path in files.files:
        file = SourceFile(
            path,
            name,
            settings.fallback_encoding,
            follow_links=settings.follow_links,
            ocr=settings.ocr,
            hidden=settings.hidden == "read",
            generated=settings.generated == "read",
        )
        try:
            kind = UNCHANGED if selection.is_unchanged(file) else known_kind(file)
            why = None if kind in (None, UNCHANGED) or file.generated else reason(file, kind)
        except DocumentError as error:
            selection.failures.append(file.failure(str(error)))
            continue
        except OSError as error:
            selection.failures.append(file.failure(f"cannot be read: {error.strerror or error}"))
            continue
        if kind is None:
            if name == selection.named:
                selection.failures.append(file.failure(f"no reader for {_format_of(path)}"))
            elif selection.is_reported(path):
                selection.skipped.append(Failure(name, FORMAT, f"no reader for {_format_of(path)}"))
        elif why is not None:
            selection.skipped.append(Failure(name, GENERATED, why))
        elif not selection.is_repeated(os.path.realpath(path)) and not selection.is_elsewhere(file, kind):
            yield file, kind


def _format_of(path: Path) -> str:
    return f"{path.suffix} files" if path.suffix else "a file without a suffix"


def sandbox_pool(settings: Settings) -> Apart:
    """Return the pool of processes that parse untrusted file formats."""
    cores = settings.threads or os.cpu_count() or 1
    return Apart(
        min(cores, _MOST_PROCESSES),
        settings.read_seconds,
        settings.read_memory,
        _LARGEST,
        settings.read_text,
    )


def check_document(document: Document) -> tuple[str, str | None]:
    """Return the hash of a document, and its problem; None if it is valid."""
    name, text, title = document.id, document.text, document.title
    if not (isinstance(name, str) and isinstance(text, str) and isinstance(title, str)):
        return "", "id, text and title must be texts"
    if not name:
        return "", "the id is empty"
    if (not text or text.isspace()) and (not title or title.isspace()):
        return "", "the text is empty"
    if len(text) > _LARGEST // 4 and len(text.encode("utf-8", "replace")) > _LARGEST:
        return "", f"the text is larger than {_LARGEST:,} bytes"
    problem = problem_of(document.locators, len(text))
    if problem is not None:
        return "", problem
    try:
        return content_of(document), None
    except UnicodeEncodeError as error:
        return "", f"not a valid text: a lone surrogate at {error.start}"
    except (TypeError, ValueError, RecursionError) as error:
        return "", f"the metadata cannot be stored: {error}"


class UniqueIds:
    """The sources before one source. `source_of` returns the source of a stored document, or None."""

    def __init__(self, source_of: Callable[[str], int | None] = lambda _: None) -> None:
        self._source_of = source_of
        self._sources: dict[int, _Names] = {}
        self._kept: set[int] = set()

    def rename(self, source: SourceRow, files: SourceFiles) -> SourceFiles:
        """Return the files of a source with ids that no file of an earlier source has."""
        own, earlier = _Names(source.spec), dict(self._sources)
        self._sources[source.number] = own
        if not (earlier or self._kept) or not files.files:
            return files
        mine = {name for name, _ in files.files}
        renamed = tuple((self._unique(name, own, earlier, mine), path) for name, path in files.files)
        return replace(files, files=renamed)

    def keep(self, source: SourceRow) -> None:
        """Note a source whose files are not read now: its stored documents keep their ids, too."""
        self._kept.add(source.number)
        if source.kind == "path":
            self._sources[source.number] = _Names(source.spec)

    def _unique(self, name: str, own: _Names, earlier: Mapping[int, _Names], mine: Container[str]) -> str:
        if not self._is_taken(name, earlier):
            return name
        for ending in own.endings():
            longer = f"{ending}/{name}"
            apart = all(ending not in names.endings() for names in earlier.values())
            if apart and longer not in mine and not self._is_taken(longer, earlier):
                return longer
        return name

    def _is_taken(self, name: str, earlier: Mapping[int, _Names]) -> bool:
        return self._source_of(name) in self._kept or any(names.has(name) for names in earlier.values())


class _Names:
    """The relative paths of a source's files."""

    def __init__(self, spec: str) -> None:
        self._is_glob = is_glob(spec)
        path = Path(spec)
        while self._is_glob and glob.has_magic(str(path)):
            path = path.parent
        self._spec = spec
        self._name = None if self._is_glob or not path.is_file() else path.name  # a folder may be away
        self._folder = path if self._name is None else path.parent
        self._matches: frozenset[str] | None = None

    def has(self, name: str) -> bool:
        """Return whether the source has a file with a relative path."""
        if self._name is not None:
            return name == self._name
        if self._is_glob:
            if self._matches is None:
                self._matches = frozenset(found for found, _ in find(self._spec).files)
            return name in self._matches
        return os.path.lexists(self._folder / name)

    def endings(self) -> Iterator[str]:
        """Yield the ends of the folder's path, the shortest first."""
        parts = [part for part in self._folder.parts if part != self._folder.anchor]
        return ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
