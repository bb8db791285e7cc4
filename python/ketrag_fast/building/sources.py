"""Sources: what a change does with each of them, their files, and the documents in the files.

Files of untrusted formats are read in processes with limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import DocumentError, InputError
from ketrag_fast.readers import Item, SourceFile, SourceFiles, find, is_glob, known_kind, single
from ketrag_fast.readers.files import PATTERN, missing
from ketrag_fast.readers.ignored import leaves_out as leaves_out
from ketrag_fast.readers.ignored import reason
from ketrag_fast.readers.repository import top_of
from ketrag_fast.readers.sandbox import UNCHANGED, Apart, ReadJob
from ketrag_fast.readers.titles import cut_title
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_files import base_of, root_of
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.storage.source_trust import source_trust
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import FORMAT, GENERATED
from ketrag_fast.types.locations import problem_of

if TYPE_CHECKING:
    from ketrag_fast.storage.tables import Tables

PathLike = str | os.PathLike[str]
Source = PathLike | Document
Sources = Source | Iterable[Source]
Others = Literal["read", "keep", "drop"]
"""The treatment of sources that a change does not name."""
_LARGEST: Final = 1_000_000_000  # SQLite's limit for one text
_MOST_PROCESSES: Final = 16
_NAMED: Final = 3
"""Files that the error about ignored files names."""


@dataclass(frozen=True, slots=True)
class SourceTask:
    """A registered source and what is done with it.

    `read` reads its files; `replace` and `extend` store `documents` in place of its documents or in addition
    to them; `keep` leaves its documents as they are; `drop` removes them and the source; `refuse` keeps the
    documents and reports `why` the files are not read.
    """

    row: SourceRow
    action: Literal["read", "replace", "extend", "keep", "drop", "refuse"]
    documents: tuple[Document, ...] = ()
    restored: tuple[str, ...] | None = None
    """The paths below which removed documents are restored; empty for all of the source, None for no path."""
    why: str = ""

    def restores(self, path: Path | None = None) -> bool:
        """Return whether a document that was removed is restored, given its file if it has one."""
        return self.restored is not None and (path is None or self.names(path))

    def names(self, path: Path) -> bool:
        """Return whether a file of the source was named; all are if the source itself was."""
        if not self.restored:
            return True
        own = Path(absolute(str(path)))
        return any(own.is_relative_to(folder) for folder in self.restored)


def list_given(sources: Sources) -> list[Source]:
    """Return sources as a list, because an iterator can be read only once.

    Raises InputError if one of them is neither a path nor a document.
    """
    if isinstance(sources, (str, os.PathLike, Document)):
        return [sources]
    is_list = isinstance(sources, Iterable) and not isinstance(sources, (bytes, dict))
    listed: list[Any] = list(sources) if is_list else [sources]
    for source in listed:
        if not isinstance(source, (str, os.PathLike, Document)):
            raise InputError(
                f"{source!r:.80} is neither a path nor a Document",
                hint="pass paths as str or pathlib.Path, and texts as Document(id, text)",
            )
    return listed


def split_sources(sources: Sources) -> tuple[list[str], list[Document] | None]:
    """Split sources into paths and documents (None if there are none).

    Raises DocumentError if a path is missing; a glob without a match counts as missing.
    """
    items = list_given(sources)
    documents = [item for item in items if isinstance(item, Document)]
    paths = [os.fspath(item) for item in items if not isinstance(item, Document)]
    for path in paths:
        try:
            is_here = path and (Path(path).exists() or (is_glob(path) and find(path).files))
        except (OSError, ValueError) as error:
            raise DocumentError(f"cannot read {path!r}: {error}") from None
        if not is_here:
            raise missing(path)
    return paths, documents or None


def list_sources(
    tables: Tables, paths: Sequence[str], documents: Sequence[Document] | None, others: Others
) -> list[SourceTask]:
    """Register the given sources, and return a task for every registered source, in order.

    Sources that are not given are read only if the user has named or confirmed them (`storage.source_trust`).
    """
    trust = source_trust(Layout(tables.path.parent))
    if others == "drop":
        tables.drop_altered_sources()
    given = []
    below: dict[str, list[str]] = {}
    registered = {}
    if others == "keep" and paths:
        registered = {row.spec: row.number for row in tables.sources() if row.kind == "path"}
        registered = {spec: number for spec, number in registered.items() if trust.allows(spec)}
    for path in paths:
        home = _home(registered, absolute(path))
        given.append(("path", path, home or absolute(path)))
        if home is not None:
            below.setdefault(home, []).append(absolute(path))
    if documents is not None:
        given.append(("documents", "documents", ""))
    tables.add_sources(given)
    named = {(kind, spec) for kind, _, spec in given}
    tasks = []
    for row in tables.sources():
        if (row.kind, row.spec) not in named:
            # Documents of a program cannot be read again, nor can those of a source on another machine.
            left = "keep" if row.kind == "documents" and others == "read" else others
            why = trust.why_not([row.spec]) if left == "read" else None
            tasks.append(SourceTask(row, left) if why is None else SourceTask(row, "refuse", why=why))
        elif row.kind == "documents":
            action: Literal["replace", "extend"] = "replace" if others == "drop" else "extend"
            tasks.append(SourceTask(row, action, tuple(documents or ()), ()))
        else:
            restored = None if others == "read" else tuple(below.get(row.spec, ()))
            tasks.append(SourceTask(row, "read", (), restored))
    return tasks


def _home(registered: Mapping[str, int], path: str) -> str | None:
    """Return the first registered folder that contains a path: ids of its documents are relative to it."""
    above = [spec for spec in map(str, Path(path).parents) if spec in registered]
    return next((spec for spec in sorted(above, key=registered.__getitem__) if Path(spec).is_dir()), None)


def absolute(spec: str) -> str:
    """Return a path or glob from the root; links stay."""
    return os.path.abspath(spec)  # noqa: PTH100 - keeps links, and a glob is not a path


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
            for _, items in sandbox.read(read_jobs(source.spec, files, settings, selection)):
                yield from (usable_item(item, seen) for item in single(items))
            yield from selection.failures
            yield from (one for one in selection.skipped if one.code == GENERATED)
            selection.failures, selection.skipped = [], []
    yield from (usable_item(item, seen) for item in documents or ())


def read_files(
    spec: str, files: Sequence[tuple[str, Path]], settings: Settings
) -> Iterator[tuple[str, Document]]:
    """Yield the documents of some files of a source, each with the id of its file.

    The files are read within the source, as a build reads them; what cannot be read is left out.
    """
    with sandbox_pool(settings) as sandbox:
        for file, items in sandbox.read(
            read_jobs(spec, SourceFiles(tuple(files)), settings, FileSelection())
        ):
            for item in single(items):
                if isinstance(item, Document) and check_document(usable_document(item))[1] is None:
                    yield file.id, usable_document(item)


def usable_item(item: Item, seen: set[str]) -> Item:
    """Return an item that can be indexed, or why it cannot; `seen` are the ids so far."""
    if isinstance(item, Failure):
        return item
    item = usable_document(item)
    problem = check_document(item)[1] or ("the id is already in use" if item.id in seen else None)
    if problem is not None:
        return Failure(str(item.id), "document", problem)
    seen.add(item.id)
    return item


def usable_document(document: Document) -> Document:
    """Return a document as it is indexed: with a text, and with a title of limited length.

    The text is the title if there is no other, as in a reference without an abstract. The title then counts
    once, as text: counted as both, such documents displace longer ones.
    """
    text, title = document.text, document.title
    if title is None:  # written for an untitled document
        return replace(document, title="")
    if not (isinstance(text, str) and isinstance(title, str)) or not title.strip():
        return document
    if not text.strip():
        return replace(document, text=title, title="", locators=())
    return cut_title(document)


def check_document(document: Document) -> tuple[str, str | None]:
    """Return the hash of a document, and its problem; None if it is valid."""
    name, text, title = document.id, document.text, document.title
    if not (isinstance(name, str) and isinstance(text, str) and isinstance(title, str)):
        return "", "id, text and title must be texts"
    if not name:
        return "", "the id is empty"
    if not text or text.isspace():
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


def find_files(spec: str, settings: Settings) -> SourceFiles:
    """Return the files of a source.

    Raises DocumentError if all of them are ignored, BackendMissing or ConfigError if `ocr` cannot be used.
    """
    if settings.ocr is not None:
        from ketrag_fast.readers.ocr import check_ocr

        check_ocr(settings.ocr)
    files = find(spec, follow=settings.follow_links, exclude=settings.exclude, gitignore=settings.gitignore)
    if not files.files and any(one.message == PATTERN for one in files.left_out):
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


class FileSelection:
    """Select the files of a source to read, and record why others are left out.

    Attributes:
        failures: Unreadable files, and a source that is itself a file of an unknown format.
        skipped: Other files of unknown formats, and generated files.
        named: Id of the file that is the source itself.
        is_linked: Whether several paths may lead to one file.
    """

    def __init__(self, named: str | None = None, skipped: list[Failure] | None = None) -> None:
        self.named = named
        self.is_linked = True
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
        """Return whether reading a file again would give its stored documents."""
        return False

    def is_reported(self, path: Path) -> bool:
        """Return whether a file of an unknown format is added to `skipped`."""
        return True

    def begin(self, file: SourceFile) -> None:
        """Note that a file will be read."""

    def note(self, file: SourceFile, failure: Failure) -> None:
        """Note why a file is not read."""

    def repeat(self, file: SourceFile) -> None:
        """Note that a file was selected before under another name."""

    def fail(self, file: SourceFile, message: str) -> None:
        """Record a failure to read a file."""
        self.failures.append(file.failure(message))
        self.note(file, self.failures[-1])

    def skip(self, file: SourceFile, code: str, message: str, *, is_reported: bool = True) -> None:
        """Record why a file is left out."""
        failure = Failure(file.id, code, message)
        self.note(file, failure)
        if is_reported:
            self.skipped.append(failure)


def read_jobs(
    spec: str, files: SourceFiles, settings: Settings, selection: FileSelection
) -> Iterator[ReadJob]:
    """Yield the files that a reader supports, with their kinds; note all others in `selection`."""
    selection.skipped += files.left_out
    root = root_of(spec, follow=settings.follow_links)
    last, in_repository = "", False
    for name, path in files.files:
        folder = os.path.dirname(path)  # noqa: PTH120 - it runs for every file
        if folder != last:
            last, in_repository = folder, top_of(folder) is not None
        file = SourceFile(
            path,
            name,
            settings.fallback_encoding,
            root=root,
            follow_links=settings.follow_links,
            ocr=settings.ocr,
            hidden=settings.hidden == "read",
            generated=settings.generated == "read",
            alone=name == selection.named,
            in_repository=in_repository,
        )
        try:
            kind = UNCHANGED if selection.is_unchanged(file) else known_kind(file)
            why = None if kind in (None, UNCHANGED) or file.generated else reason(file, kind)
            real = os.path.realpath(path) if selection.is_linked else str(path)
        except DocumentError as error:
            selection.fail(file, str(error))
            continue
        except OSError as error:
            selection.fail(file, f"cannot be read: {error.strerror or error}")
            continue
        if kind is None:
            form = f"{path.suffix} files" if path.suffix else "a file without a suffix"
            about = f"no reader for {form}"
            if name == selection.named:
                selection.fail(file, about)
            else:
                selection.skip(file, FORMAT, about, is_reported=selection.is_reported(path))
        elif why is not None:
            selection.skip(file, GENERATED, why)
        elif selection.is_repeated(real):
            selection.repeat(file)
        elif not selection.is_elsewhere(file, kind):
            if kind != UNCHANGED:
                selection.begin(file)
            yield file, kind


def sandbox_pool(settings: Settings) -> Apart:
    """Return the pool of processes that parse untrusted file formats."""
    cores = min(settings.threads or os.cpu_count() or 1, _MOST_PROCESSES)
    return Apart(cores, settings.read_seconds, settings.read_memory, _LARGEST, settings.read_text)


class UniqueIds:
    """Ids of files that no file of an earlier source has: they begin with the end of the source's path.

    `source_of` returns the source of a stored document, or None.
    """

    def __init__(self, source_of: Callable[[str], int | None] = lambda _: None) -> None:
        self._source_of = source_of
        self._sources: dict[int, _Names] = {}
        self._kept: set[int] = set()

    def rename(self, source: SourceRow, files: SourceFiles) -> SourceFiles:
        """Return the files of a source with ids that no file of an earlier source has."""
        own, earlier = _Names(source.spec), list(self._sources.values())
        self._sources[source.number] = own
        if not (earlier or self._kept) or not files.files:
            return files
        mine = {name for name, _ in files.files}
        renamed = tuple((self._unique(name, own, earlier, mine), path) for name, path in files.files)
        return replace(files, files=renamed)

    def keep(self, source: SourceRow, *, looks: bool = True) -> None:
        """Note a source whose files are not read now: its stored documents keep their ids, too.

        Unless its files may be looked up, only the ids of stored documents are kept.
        """
        self._kept.add(source.number)
        if source.kind == "path" and looks:
            self._sources[source.number] = _Names(source.spec)

    def _unique(self, name: str, own: _Names, earlier: Sequence[_Names], mine: Container[str]) -> str:
        def is_taken(name: str) -> bool:
            return self._source_of(name) in self._kept or any(names.has(name) for names in earlier)

        if not is_taken(name):
            return name
        for ending in own.endings():
            longer = f"{ending}/{name}"
            is_own = all(ending not in names.endings() for names in earlier)
            if is_own and longer not in mine and not is_taken(longer):
                return longer
        return name


class _Names:
    """The relative paths of a source's files."""

    def __init__(self, spec: str) -> None:
        path = base_of(spec) if is_glob(spec) else Path(spec)
        self._spec = spec
        self._is_glob = is_glob(spec)
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
