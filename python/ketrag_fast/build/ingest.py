"""Update the tables from the sources: documents that are new, changed or gone, compared by content."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.shards import Shards, shards_of
from ketrag_fast.base.filters import Columns, Condition
from ketrag_fast.base.progress import Meter
from ketrag_fast.errors import Cancelled, DocumentError
from ketrag_fast.readers import ALONE, Item, SourceFile, SourceFiles, find, is_glob, known_kind
from ketrag_fast.readers.files import missing
from ketrag_fast.readers.sandbox import Apart, ReadJob
from ketrag_fast.storage.tables import Known, SourceRow, Tables, content_of, hash_purged_id
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.locations import problem_of

PathLike = str | os.PathLike[str]
Source = PathLike | Document
Sources = Source | Iterable[Source]

_LARGEST = 1_000_000_000  # SQLite's limit for one text
_FEW = 5
_MOST_PROCESSES = 16
_MOST_ITEMS = 32
"""Bits for the number of an item within its file; the number of the file is in the bits above."""


@dataclass(slots=True)
class Ingested:
    """The changes from reading the sources. `fingerprint` covers all documents and their order."""

    fingerprint: str = ""
    documents: int = 0
    added: int = 0
    updated: int = 0
    removed: int = 0
    passed_over: int = 0
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _IngestState:
    tables: Tables
    known: dict[str, Known]
    settings: Settings
    meter: Meter
    done: Ingested
    removed: set[str] = field(default_factory=set)
    back: bool = False
    """Whether reading the current source restores removed documents."""
    inside: list[str] = field(default_factory=list)
    """If not empty, it restores only documents below these paths."""
    shards: Shards | None = None
    """The shards to index; None for all documents."""
    elsewhere: int = 0
    """The number of skipped files and documents of other shards."""
    seen: set[str] = field(default_factory=set)
    read: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of the documents that a build starts with.

    `sources` are read and registered; `replace` drops all other sources. With `only`, no other source is
    read, and `sources` restore documents that were removed. `remove` lists ids, or patterns of ids (`*`, `?`,
    `[...]`; a `*` also matches `/`), of documents to remove.
    """

    sources: Sources = ()
    replace: bool = False
    only: bool = False
    remove: Sequence[str] = ()
    where: Condition | None = None
    """Documents whose metadata meets this condition are removed too."""


def split_sources(sources: Sources) -> tuple[list[str], list[Document] | None]:
    """Split sources into paths and documents. Accepts one path, one document, or an iterable of either."""
    items: Iterable[Source] = [sources] if isinstance(sources, (str, os.PathLike, Document)) else sources
    paths: list[str] = []
    documents: list[Document] | None = None
    for item in items:
        if isinstance(item, Document):
            documents = documents or []
            documents.append(item)
        else:
            paths.append(os.fspath(item))
    return paths, documents


def apply_change(
    tables: Tables, change: Change, settings: Settings, meter: Meter, *, rebuild: bool = False
) -> Ingested:
    """Apply `change` in one transaction, and return what changed."""
    with tables.transaction():
        return change_documents(tables, change, settings, meter, rebuild=rebuild)


def change_documents(
    tables: Tables, change: Change, settings: Settings, meter: Meter, *, rebuild: bool = False
) -> Ingested:
    """Do the same as `apply_change` within the caller's transaction."""
    sources = dataclasses.replace(change, sources=_list_sources(change.sources))
    removed, unknown = removal(tables, change.remove, change.where)
    if change.only and not sources.sources:
        done = as_they_are(tables)
    else:
        done = _ingest(tables, sources, settings, meter, rebuild)
    done.removed += removed
    done.failures += unknown
    return done


def _list_sources(sources: Sources) -> list[Source]:
    """Return the sources as a list, because an iterator can be consumed only once."""
    return [sources] if isinstance(sources, (str, os.PathLike, Document)) else list(sources)


def removal(
    tables: Tables, patterns: Sequence[str], where: Condition | None = None
) -> tuple[int, list[Failure]]:
    """Remove documents. Returns how many, and a failure for each id or pattern that matches none."""
    known = tables.known() if patterns or where is not None else {}
    found: dict[str, Known] = {}
    unknown = []
    for pattern in patterns:
        fits = fnmatch.filter(known, pattern) if is_glob(pattern) else []
        own = [pattern] if pattern in known else fits
        found.update((name, known[name]) for name in own)
        if not own:
            unknown.append(Failure(pattern, "document", "the index has no such document"))
    if where is not None:
        columns = Columns(json.loads(data) for data in tables.column("metadata"))
        ids = (name for name, _ in tables.document_hashes())
        marks = columns.fitting(where).tolist()
        found.update((name, known[name]) for name, mark in zip(ids, marks, strict=True) if mark)
    tables.remove(one.key for one in found.values())
    tables.set_removed(found, removed=True)
    return len(found), unknown


def _ingest(tables: Tables, change: Change, settings: Settings, meter: Meter, rebuild: bool) -> Ingested:
    """Register the sources of `change`, read the registered sources, and return what changed.

    A missing source raises DocumentError before anything changes. Documents given by a program stay until
    `replace`; a document with the id of an earlier one replaces it. With `rebuild`, stored documents that do
    not match their hash are stored again from their source.
    """
    paths, documents = split_sources(change.sources)
    for path in paths:
        if _is_missing(path):
            raise missing(path)
    replace = change.replace
    if replace:
        tables.drop_altered_sources()
    given = []
    inside: dict[str, list[str]] = {}
    for path in paths:
        home = _home(tables, _absolute(path)) if change.only else None
        given.append(("path", path, home or _absolute(path)))
        if home is not None:
            inside.setdefault(home, []).append(_absolute(path))
    if documents is not None:
        given.append(("documents", "documents", ""))
    for kind, label, spec in given:
        tables.add_source(kind, label, spec)
    wanted = {(kind, spec) for kind, _, spec in given}
    known = tables.known()
    if rebuild:
        for name in tables.altered().values():
            known[name] = dataclasses.replace(known[name], content="")
    state = _IngestState(tables, known, settings, meter, Ingested(), tables.removed())
    state.shards = shards_of(settings.shard)
    dropped = []
    with _sandbox_pool(settings) as apart:
        for source in tables.sources():
            named = (source.kind, source.spec) in wanted
            state.back = named and (replace or change.only or source.kind == "documents")
            state.inside = inside.get(source.spec, [])
            if replace and not named:
                dropped.append(source.number)
            elif change.only and not named:
                state.seen |= {name for name, one in known.items() if one.source == source.number}
            elif source.kind == "documents":
                # Documents under a path belong to a source that is not on this machine: they stay.
                _read_documents(state, source, None if source.spec else documents, replace)
            else:
                _read_files(state, source, apart)
    gone = [known.key for name, known in state.known.items() if name not in state.seen]
    tables.remove(gone)
    for number in dropped:
        tables.remove_source(number)
    state.done.removed = len(gone)
    new = {failure.document for failure in state.done.failures}
    old = [one for one in tables.failures() if one.document not in new] if change.only else []
    tables.set_failures([*old, *state.done.failures])
    _count(state.done, tables)
    if state.done.passed_over:
        state.done.warnings.append(
            f"skipped {state.done.passed_over:,} documents that were removed; "
            "`ketrag add` with their source restores them"
        )
    if state.elsewhere:
        state.done.warnings.append(
            f"skipped {state.elsewhere:,} files and documents outside shard {settings.shard}"
        )
    if state.skipped:
        kinds = ", ".join(f"{suffix or 'no suffix'} ({n})" for suffix, n in state.skipped.most_common(_FEW))
        state.done.warnings.append(f"skipped {state.skipped.total()} files of unknown formats: {kinds}")
    return state.done


def read_only(sources: Sources, settings: Settings) -> Iterator[Item]:
    """Yield the documents and failures that a build would read from `sources`, without storing anything.

    Raises DocumentError if a source is missing.
    """
    paths, documents = split_sources(sources)
    for path in paths:
        if _is_missing(path):
            raise missing(path)
    seen: set[str] = set()
    read: set[str] = set()

    def again(real: str) -> bool:
        known = real in read
        read.add(real)
        return known

    with _sandbox_pool(settings) as apart:
        for path in paths:
            found = find(_absolute(path), follow=settings.follow_links)
            yield from found.failures
            others: list[Failure] = []
            jobs = _jobs(found, settings, again, others, Counter())
            for _, items in apart.read(jobs):
                yield from (_usable(item, seen) for item in items)
            yield from others
    yield from (_usable(item, seen) for item in documents or ())


def _usable(item: Item, seen: set[str]) -> Item:
    if isinstance(item, Failure):
        return item
    problem = _check_document(item)[1] or ("the id is already in use" if item.id in seen else None)
    if problem is not None:
        return Failure(str(item.id), "document", problem)
    seen.add(item.id)
    return item


def as_they_are(tables: Tables) -> Ingested:
    """Return the stored documents as an `Ingested` without reading any source."""
    found = Ingested()
    _count(found, tables)
    return found


def _count(found: Ingested, tables: Tables) -> None:
    found.documents = tables.count()
    found.fingerprint = tables.fingerprint()


def _home(tables: Tables, path: str) -> str | None:
    """Return the registered folder that contains a path: ids of its documents are relative to it."""
    specs = (source.spec for source in tables.sources() if source.kind == "path")
    own = Path(path)
    return next((s for s in specs if s != path and own.is_relative_to(s) and Path(s).is_dir()), None)


def _is_missing(spec: str) -> bool:
    """Return whether a given source is missing. A glob without a match counts as missing."""
    try:
        return not spec or (not Path(spec).exists() and not (is_glob(spec) and find(spec).files))
    except (OSError, ValueError) as error:
        raise DocumentError(f"cannot read {spec!r}: {error}") from None


def _absolute(spec: str) -> str:
    return os.path.abspath(spec)  # noqa: PTH100 - keeps links, and a glob is not a path


def _read_files(state: _IngestState, source: SourceRow, apart: Apart) -> None:
    found = find(source.spec, follow=state.settings.follow_links)
    if found.missing:
        state.done.warnings.append(f"the source {source.label} is missing; its documents were removed")
    for failure in found.failures:
        _fail(state, failure)
    place = 0
    named = found.files[0][0] if len(found.files) == 1 and not Path(source.spec).is_dir() else None

    def again(real: str) -> bool:
        """Return whether an earlier source has this file already (a folder, and a file in it)."""
        return state.read.setdefault(real, source.number) != source.number

    def waiting() -> None:
        if state.meter(len(state.seen)) is False:
            raise Cancelled("stopped while reading the sources")

    def elsewhere(file: SourceFile, kind: str) -> bool:
        """Return whether a file with one document, whose id is known, belongs to another shard."""
        known = state.shards is not None and kind in ALONE and not state.shards.holds(file.id)
        state.elsewhere += known
        return known

    others: list[Failure] = []
    jobs = _jobs(found, state.settings, again, others, state.skipped, named, elsewhere)
    order = {path: number for number, (_, path) in enumerate(found.files)} if state.shards else {}
    back = state.back
    for file, items in apart.read(jobs, waiting):
        if state.inside:
            own = Path(_absolute(str(file.path)))
            state.back = any(own.is_relative_to(path) for path in state.inside)
        place = order.get(file.path, 0) << _MOST_ITEMS if state.shards else place
        for item in items:
            place = _take(state, source, place, item)
        state.bytes += _size(file)
        state.meter.note = _megabytes(state.bytes)
    state.back = back
    for failure in others:
        _fail(state, failure)


def _jobs(
    found: SourceFiles,
    settings: Settings,
    again: Callable[[str], object],
    others: list[Failure],
    skipped: Counter[str],
    named: str | None = None,
    elsewhere: Callable[[SourceFile, str], bool] = lambda *_: False,
) -> Iterator[ReadJob]:
    """Yield the files that a reader supports, with their kinds.

    Unreadable files, and an unsupported file that is the source itself, are added to `others` as failures.
    """
    for name, path in found.files:
        file = SourceFile(path, name, settings.fallback_encoding, follow_links=settings.follow_links)
        try:
            kind = known_kind(file)
        except DocumentError as error:
            others.append(file.failure(str(error)))
            continue
        except OSError as error:
            others.append(file.failure(f"cannot be read: {error.strerror or error}"))
            continue
        if kind is None:
            if name == named:
                suffix = path.suffix or "without a suffix"
                others.append(file.failure(f"no reader for a file {suffix}"))
            else:
                skipped[path.suffix.lower()] += 1
        elif not again(os.path.realpath(path)) and not elsewhere(file, kind):
            yield file, kind


def _sandbox_pool(settings: Settings) -> Apart:
    """Return the pool of processes that parse untrusted file formats."""
    cores = settings.threads or os.cpu_count() or 1
    return Apart(
        min(cores, _MOST_PROCESSES),
        settings.read_seconds,
        settings.read_memory,
        _LARGEST,
        settings.read_text,
    )


def _size(file: SourceFile) -> int:
    try:
        return file.size()
    except OSError:
        return 0


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _read_documents(
    state: _IngestState, source: SourceRow, documents: Sequence[Document] | None, replace: bool
) -> None:
    place = 0
    given = documents or []
    if not replace:
        old = sorted((k.place, name) for name, k in state.known.items() if k.source == source.number)
        fresh = {document.id for document in given}
        # Documents that a program gave earlier cannot be read again; they keep their position.
        order = {name for _, name in old}
        state.seen |= order - fresh
        places = {name: at for at, name in old}
        place = max(places.values(), default=-1) + 1
        for document in given:
            at = places.get(document.id)
            if at is None:
                place = _take(state, source, place, document)
            else:
                _take(state, source, at, document)
        return
    for document in given:
        place = _take(state, source, place, document)


def _take(state: _IngestState, source: SourceRow, place: int, item: Item) -> int:
    """Store one item, and return the position of the next."""
    if state.meter(len(state.seen)) is False:
        raise Cancelled("stopped while reading the sources")
    if state.shards is None:
        return _store(state, source, place, item)
    name = item.document if isinstance(item, Failure) else item.id
    if not isinstance(name, str) or state.shards.holds(name):
        _store(state, source, place, item)
    else:
        state.elsewhere += 1
    return place + 1  # counts items of other shards too, so that `merge` can restore the order of the whole


def _store(state: _IngestState, source: SourceRow, place: int, item: Item) -> int:
    if isinstance(item, Failure):
        _fail(state, item)
        return place
    content, problem = _check_document(item)
    if problem is None and item.id in state.seen:
        problem = f"the id {item.id!r} is already in use; the first document with it is kept"
    if problem is not None:
        shown = str(item.id).encode("utf-8", "backslashreplace").decode()
        _fail(state, Failure(shown, "document", problem))
        return place
    names = {item.id, hash_purged_id(item.id)} & state.removed if state.removed else ()
    if names:
        if not state.back:
            state.done.passed_over += 1
            return place
        state.tables.set_removed(names, removed=False)
    old = state.known.get(item.id)
    if old is None:
        state.tables.insert(item, source.number, place, content)
        state.done.added += 1
    elif old.content != content:
        state.tables.update(old.key, item, source.number, place, content)
        state.done.updated += 1
    elif (old.source, old.place) != (source.number, place):
        state.tables.move(old.key, source.number, place)
    state.seen.add(item.id)
    return place + 1


def _check_document(document: Document) -> tuple[str, str | None]:
    """Return the hash of a document, and its problem; None if it is valid."""
    if not all(isinstance(part, str) for part in (document.id, document.text, document.title)):
        return "", "id, text and title must be texts"
    if not document.id:
        return "", "the id is empty"
    if all(not part or part.isspace() for part in (document.text, document.title)):
        return "", "the text is empty"
    if len(document.text) > _LARGEST // 4 and len(document.text.encode("utf-8", "replace")) > _LARGEST:
        return "", f"the text is larger than {_LARGEST:,} bytes"
    problem = problem_of(document.locators, len(document.text))
    if problem is not None:
        return "", problem
    try:
        return content_of(document), None
    except UnicodeEncodeError as error:
        return "", f"not a valid text: a lone surrogate at {error.start}"
    except (TypeError, ValueError, RecursionError) as error:
        return "", f"the metadata cannot be stored: {error}"


def _fail(state: _IngestState, failure: Failure) -> None:
    if state.settings.on_error == "stop":
        raise DocumentError(
            f"{failure.document}: {failure.message}", hint="--on-error skip continues without it"
        )
    state.done.failures.append(failure)
