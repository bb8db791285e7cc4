"""Update the tables from the sources, in three passes that run as one stream.

1. `sources.list_sources` registers the given sources and lists what is done with each.
2. `source_comparison` reads the sources, compares documents by content, and yields a step for each that is
   not stored as it is.
3. `_apply_all` stores these steps.
"""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Settings, build_settings
from ketrag_fast.base.progress import Meter
from ketrag_fast.building.file_changes import FileChanges
from ketrag_fast.building.single_files import NeedsComparisonError, SingleFiles
from ketrag_fast.building.source_comparison import (
    BatchInsert,
    DocumentChange,
    DocumentMove,
    Restored,
    SourceComparison,
    Step,
)
from ketrag_fast.building.sources import (
    Others,
    Sources,
    SourceTask,
    find_files,
    list_given,
    list_sources,
    sandbox_pool,
    split_sources,
)
from ketrag_fast.errors import Cancelled, DocumentError, InputError
from ketrag_fast.readers import FORMATS, is_glob
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.checksum import hash_purged_id, metadata_json
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.manifest import Manifest
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.spec.stage import Ahead
from ketrag_fast.types import BuildReport, Document, Failure
from ketrag_fast.types.documents import FORMAT, GENERATED, HIDDEN, IGNORED, LEFT_OUT
from ketrag_fast.types.locations import from_rows, to_text
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition

_FEW: Final = 5
_TOGETHER: Final = 512
_TOGETHER_CHARACTERS: Final = 1 << 20
"""Bounds of the new documents that are stored together: their number and their characters."""
_TIMES: Final = 5
"""Space that a build needs at its peak, times the text, at least."""
_MARKUP: Final = 2
"""A plain file has at least a text of half its size, on average; the rest may be markup."""


@dataclass(slots=True)
class Ingested:
    """The changes from reading the sources. `fingerprint` covers all documents and their order."""

    fingerprint: str = ""
    documents: int = 0
    added: int = 0
    updated: int = 0
    removed: int = 0
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)

    def report(self, manifest: Manifest, **more: Any) -> BuildReport:
        """Return the report of a build that ends with a generation; `more` are other fields of the report."""
        return BuildReport(
            generation=manifest.generation,
            digest=manifest.digest,
            documents=self.documents,
            added=self.added,
            removed=self.removed,
            updated=self.updated,
            failures=tuple(self.failures),
            skipped=tuple(self.skipped),
            **more,
        )


@dataclass(frozen=True, slots=True)
class Change:
    """The change of the documents that a build starts with.

    `sources` are read and registered; `others` is done with all other sources. If these are not read,
    `sources` restore documents that were removed. `remove` lists ids, or patterns of ids (`*`, `?`, `[...]`;
    a `*` also matches `/`), of documents to remove.
    """

    sources: Sources = ()
    others: Others = "read"
    remove: Sequence[str] = ()
    where: Condition | None = None
    """Documents whose metadata meets this condition are removed too."""
    purge: bool = False
    """Whether to erase everything stored about removed documents, including those removed earlier."""
    thorough: bool = False
    """Whether to compare the contents of all files, and not only those whose size or times differ."""
    changes: FileChanges | None = None
    """The changed files, if no others need to be looked at."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The sources and settings stored before a build reads anything, and the settings stored earlier."""

    change: Change
    registered: tuple[int, ...]
    earlier: Mapping[str, Any]

    def undo(self, tables: Tables) -> None:
        """Restore the tables after a build that failed before it stored a document."""
        with tables.transaction():
            for number in self.registered:
                tables.remove_source(number)
            tables.set_settings(self.earlier)


def begin_change(tables: Tables, change: Change, settings: Settings) -> Beginning:
    """Store the settings of a build and, for a new index, its paths, in one transaction.

    A first build that is stopped or killed at any later moment is continued with both.
    """
    registered: list[int] = []
    with tables.transaction():
        earlier = tables.settings()
        tables.set_settings(build_settings(settings))
        if change.others == "read" and not tables.sources():
            change = replace(change, sources=list_given(change.sources))
            paths, documents = split_sources(change.sources)
            if paths and documents is None:
                registered = [task.row.number for task in list_sources(tables, paths, None, change.others)]
    return Beginning(change, tuple(registered), earlier)


def apply_change(
    tables: Tables,
    change: Change,
    settings: Settings,
    meter: Meter,
    *,
    rebuild: bool = False,
    ahead: Sequence[Ahead] = (),
    beginning: Beginning | None = None,
) -> Ingested:
    """Apply `change` in one transaction, and return what changed. New documents are given to `ahead`, too.

    An error leaves nothing of the change, nor of its `beginning`, unless the build was stopped. Raises
    DocumentError if the paths of a new index, or those that replace all sources, hold no document.
    """
    try:
        with tables.transaction():
            done = change_documents(tables, change, settings, meter, rebuild=rebuild, ahead=ahead)
            _require_documents(tables, change, settings, done, beginning)
            return done
    except (Cancelled, KeyboardInterrupt):
        raise
    except BaseException:
        if beginning is not None:
            beginning.undo(tables)
        raise


def _require_documents(
    tables: Tables, change: Change, settings: Settings, done: Ingested, beginning: Beginning | None
) -> None:
    """Raise DocumentError if sources hold no documents: a path may be mistyped, or a drive not connected."""
    if done.documents or done.failures:
        return
    labels = [source.label for source in tables.sources()]
    is_whole = beginning is not None and bool(beginning.registered)
    if change.others == "drop":
        given = list_given(change.sources)
        is_whole |= bool(given) and not any(isinstance(one, Document) for one in given)
    if is_whole and settings.shard is None:
        skipped = "".join(f" ({warning})" for warning in done.warnings if warning.startswith("skipped"))
        raise DocumentError(
            f"no document found in {_first(labels)}{skipped}",
            hint="check the path; docs/reference/documents.md lists the formats; nothing was changed",
        )
    if change.others == "read" and done.removed:
        count = "its document" if done.removed == 1 else f"its {done.removed:,} documents"
        raise DocumentError(
            f"no document is left in {', '.join(labels[:_FEW])}; nothing was changed: the index keeps "
            f"{count}",
            hint="check that the folder is the right one; `ketrag remove '*'` removes all documents",
        )


def change_documents(
    tables: Tables,
    change: Change,
    settings: Settings,
    meter: Meter,
    *,
    rebuild: bool = False,
    ahead: Sequence[Ahead] = (),
) -> Ingested:
    """Do the same as `apply_change` within the caller's transaction.

    A missing path that was given raises DocumentError before anything changes. Documents given by a program
    stay until the sources are replaced; a document with the id of a stored one replaces it, also that of a
    file until the file's source is read again. With `rebuild`, stored documents that do not match their hash
    are stored again from their source.
    """
    paths, documents = split_sources(change.sources)
    removed, unknown = _remove(tables, change)
    single = _change_single_files(tables, change.changes, settings, meter) if change.changes else None
    if single is not None:
        done = single
    elif change.others == "keep" and not paths and documents is None:
        done = as_they_are(tables)
    else:
        tasks = list_sources(tables, paths, documents, change.others)
        _require_disk_space(tables, tasks, settings)
        known = tables.known()
        for name in tables.altered().values() if rebuild else ():
            known[name] = replace(known[name], content="")
        tables.drop_invalid_files()
        is_new = settings.shard is not None or rebuild
        comparison = SourceComparison(
            *(known, tables.removed(), settings, meter, tables.known_files()),
            is_new=is_new,
            thorough=change.thorough,
            tables=tables,
        )
        comparison.has_several = sum(task.row.kind == "path" for task in tasks) > 1
        done = Ingested()
        with sandbox_pool(settings) as sandbox:
            steps = (step for task in tasks for step in comparison.changes(task, sandbox))
            _apply_all(tables, steps, done, ahead)
        gone = [one.key for name, one in known.items() if name not in comparison.seen]
        tables.remove(gone)
        done.removed = len(gone)
        for task in tasks:
            if task.action == "drop":
                tables.remove_source(task.row.number)
        tables.set_known_files(comparison.rows, comparison.gone)
        # Failures of sources that were not read stay.
        new = {failure.document for failure in comparison.failures}
        old = [one for one in tables.failures() if one.document not in new] if change.others == "keep" else []
        tables.set_failures([*old, *comparison.failures])
        noted = [*comparison.skipped, *comparison.unsure]
        names = {one.document for one in noted}
        earlier = [one for one in tables.left_out() if one.document not in names]
        tables.set_left_out([*(earlier if change.others == "keep" else []), *noted])
        done.failures += comparison.failures
        done.skipped += comparison.skipped
        done.warnings += _warnings(comparison)
        done.documents, done.fingerprint = tables.count(), tables.fingerprint()
    done.removed += removed
    done.failures += unknown
    return done


def _change_single_files(
    tables: Tables, changes: FileChanges, settings: Settings, meter: Meter
) -> Ingested | None:
    """Index the changed files; return None, with the tables as they were, if all files must be compared."""
    done = Ingested()
    files = SingleFiles(tables, changes, settings, meter)
    comparison = files.comparison
    try:
        with tables.savepoint(NeedsComparisonError):
            _apply_all(tables, files.steps(), done, ())
            gone = files.gone()
            if gone:
                tables.remove(gone)
            tables.set_known_files(comparison.rows, comparison.gone)
            notes = tables.notes_of_files()
            if files.has_notes():  # else the lists of all files stay as they are, which may be long
                ignored = [one for one in tables.left_out() if one.code == IGNORED]
                tables.replace_failures(files.changed_notes(), comparison.failures)
                tables.set_left_out([*ignored, *(one for one in notes if one.code in LEFT_OUT)])
    except NeedsComparisonError:
        return None
    comparison.recall(notes)
    done.removed = len(gone)
    done.failures, done.skipped, done.warnings = tables.failures(), comparison.skipped, _warnings(comparison)
    done.documents, done.fingerprint = tables.count(), tables.fingerprint()
    return done


def _remove(tables: Tables, change: Change) -> tuple[int, list[Failure]]:
    """Remove documents. Returns how many, and a failure for each id or pattern that matches none.

    A purge also matches documents that were removed earlier, and raises InputError if nothing matches: a
    typing error must not erase what was kept of other documents. It is not raised if an earlier purge was not
    completed; then the patterns of that purge count as matches.
    """
    patterns, where = change.remove, change.where
    has_globs = where is not None or any(map(is_glob, patterns))
    known = tables.known(None if has_globs else patterns)
    pending = tables.pending_purge() if change.purge else None
    earlier = tables.removed() | (pending or set()) if change.purge else set()
    matches: dict[str, Known] = {}
    unknown = []
    for pattern in patterns:
        fits = fnmatch.filter(known, pattern) if is_glob(pattern) else []
        own = [pattern] if pattern in known else fits
        matches.update((name, known[name]) for name in own)
        is_earlier = not earlier.isdisjoint((pattern, hash_purged_id(pattern)))
        if not (own or is_earlier or (is_glob(pattern) and fnmatch.filter(earlier, pattern))):
            unknown.append(Failure(pattern, "unknown", "the index has no such document"))
    if where is not None:
        from ketrag_fast.base.filters import Columns

        columns = Columns(json.loads(data) for data in tables.column("metadata"))
        ids = (name.decode() for name in tables.column("id"))
        marks = columns.fitting(where).tolist()
        matches.update((name, known[name]) for name, mark in zip(ids, marks, strict=True) if mark)
    is_wrong = not matches and len(unknown) == len(patterns) and (patterns or where is not None)
    if change.purge and pending is None and is_wrong:
        shown = ", ".join(map(repr, patterns[:_FEW])) or "the filter"
        raise InputError(
            f"{shown} matches no document that is in the index or was removed from it; nothing was purged",
            hint="`ketrag documents` lists the ids; `ketrag remove --purge` alone purges all removed ones",
        )
    tables.read_again((one.source, one.place) for one in matches.values())
    tables.remove(one.key for one in matches.values())
    tables.set_removed(matches, removed=True)
    if change.purge:
        begun = {*patterns} - {failure.document for failure in unknown}
        tables.set_pending_purge({*map(hash_purged_id, begun)} | (pending or set()))
    return len(matches), unknown


def _apply_all(tables: Tables, steps: Iterable[Step], done: Ingested, ahead: Sequence[Ahead]) -> None:
    """Store changes, new documents several at a time, and count them."""
    new: list[tuple[Document, int, int, str]] = []
    characters = 0

    def insert() -> None:
        nonlocal new, characters
        tables.insert(new)
        done.added += len(new)
        if ahead and new:
            _send_ahead(ahead, [document for document, *_ in new], [content for *_, content in new])
        new, characters = [], 0

    for step in steps:
        if isinstance(step, BatchInsert):
            insert()
            tables.insert_batch(step.batch, step.contents, step.source, step.place)
            done.added += len(step.batch)
            for one in ahead:
                one.add(step.batch.packed, step.contents, step.batch.located)
            continue
        if isinstance(step, DocumentChange) and step.key is None:
            new.append((step.document, step.source, step.place, step.content))
            characters += len(step.document.text)
            if len(new) >= _TOGETHER or characters >= _TOGETHER_CHARACTERS:
                insert()
            continue
        if isinstance(step, DocumentMove):
            tables.move(step.key, step.source, step.place)
        elif isinstance(step, Restored):
            tables.set_removed(step.marks, removed=False)
        elif step.key is not None:
            tables.update(step.key, step.document, step.source, step.place, step.content)
            done.updated += 1
            if step.taken_from is not None:
                tables.read_again([step.taken_from])
        for one in ahead:
            one.give_up()
    insert()


def _send_ahead(ahead: Sequence[Ahead], documents: Sequence[Document], contents: Sequence[str]) -> None:
    """Pass new documents on."""
    if not ahead:
        return
    from ketrag_fast.kernels.text import pack

    columns = {
        "id": pack([document.id for document in documents]),
        "title": pack([document.title for document in documents]),
        "text": pack([document.text for document in documents]),
    }
    if any(document.metadata for document in documents):
        columns["metadata"] = pack([metadata_json(document) for document in documents])
    # As they are stored: sorted, and with lists instead of tuples.
    located = {
        at: from_rows(json.loads(to_text(document.locators)))
        for at, document in enumerate(documents)
        if document.locators
    }
    for one in ahead:
        one.add(columns, [bytes.fromhex(content) for content in contents], located)


def _warnings(comparison: SourceComparison) -> list[str]:
    """Return warnings about what was skipped or guessed."""
    found = list(comparison.warnings)
    if comparison.passed_over:
        is_one = comparison.passed_over == 1
        was, their, them = ("was", "its", "it") if is_one else ("were", "their", "them")
        what = f"{counted(comparison.passed_over, 'document')} that {was} removed"
        found.append(f"skipped {what}; `ketrag add` with {their} source restores {them}")
    if comparison.elsewhere:
        shard = comparison.settings.shard
        found.append(f"skipped {comparison.elsewhere:,} files and documents outside shard {shard}")
    skipped: dict[str, list[Failure]] = {}
    for one in comparison.skipped:
        skipped.setdefault(one.code, []).append(one)
    if unknown := skipped.get(FORMAT):
        suffixes = Counter(PurePosixPath(one.document).suffix.lower() for one in unknown)
        kinds = ", ".join(f"{suffix or 'no suffix'} ({n})" for suffix, n in suffixes.most_common(_FEW))
        formats = "an unknown format" if len(unknown) == 1 else "unknown formats"
        found.append(f"skipped {counted(len(unknown), 'file')} of {formats}: {kinds}")
    if written := skipped.get(GENERATED):
        files = counted(len(written), "minified or generated file")
        found.append(f"skipped {files}: {_first_notes(written)}; -o generated=read reads them")
    if hidden := skipped.get(HIDDEN):
        found.append(f"left out what is hidden in {_first_notes(hidden)}; -o hidden=read reads it")
    if comparison.unsure:
        files = counted(len(comparison.unsure), "file")
        named = _first_notes(comparison.unsure)
        found.append(f"the encoding of {files} is not sure: {named}; -o fallback_encoding=NAME sets it")
    return found


def _first_notes(notes: Iterable[Failure]) -> str:
    return _first([f"{one.document} ({one.message})" for one in notes])


def _first(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def as_they_are(tables: Tables) -> Ingested:
    """Return the stored documents as an `Ingested` without reading any source."""
    return Ingested(tables.fingerprint(), tables.count())


def _require_disk_space(tables: Tables, tasks: Sequence[SourceTask], settings: Settings) -> None:
    """Raise StorageFull if a first build needs more space than is free. Only plain files count."""
    if tables.count():
        return  # how much of the sources is new is not known before they are read
    size = 0
    for task in tasks:
        texts = (document.text for document in task.documents)
        size += sum(len(text) for text in texts if isinstance(text, str))  # others are refused later
        if task.action == "read":
            with suppress(DocumentError):  # reading reports it
                found = find_files(task.row.spec, settings)
                size += sum(_plain_bytes(path) for _, path in found.files) // _MARKUP
    from ketrag_fast.storage.array_spool import require_space  # few changes are large

    require_space(tables.path.parent, _TIMES * size)


def _plain_bytes(path: Path) -> int:
    kind = BY_SUFFIX.get(path.suffix.lower())
    if kind is None or kind not in FORMATS or not FORMATS[kind].inside:
        return 0
    try:
        return path.stat().st_size
    except OSError:
        return 0
