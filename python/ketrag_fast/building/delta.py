"""Change a few documents of a large index at the cost of the change: publish a delta next to the base.

The tables change as in any build. Instead of new arrays, the changes of the published ones are computed and
stored (`storage.delta`): those of the new documents, after the changes that were published before. A change
by documents and ids is applied to the tables here, without looking at the others; after sources were read,
all documents are compared with the published ones. Whatever this cannot do is left to an ordinary build,
which computes the arrays of all documents and so also folds the delta into a new base: other modes, purges,
documents in another order, the first document with headings, metadata or another language than English.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import build_settings
from ketrag_fast.base.progress import Meter
from ketrag_fast.building.async_writer import write_stage
from ketrag_fast.building.ingest import Change, Ingested
from ketrag_fast.building.model_settings import source_of
from ketrag_fast.building.reports import usage_of
from ketrag_fast.building.sources import check_document, split_sources, usable_document
from ketrag_fast.building.stages import Build
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.readers import is_glob
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.arrays import Arrays
from ketrag_fast.storage.checksum import HASH_BYTES, text_digest
from ketrag_fast.storage.checksum import fingerprint_of as fingerprint_of_hashes
from ketrag_fast.storage.delta import BEFORE, DELTA, NewDocuments, delta_arrays, patches_of
from ketrag_fast.storage.document_table import DocumentTotals, Known
from ketrag_fast.storage.durable import discard_folder, remove_folder
from ketrag_fast.storage.generation import Generation, open_generation, publish
from ketrag_fast.storage.layout import SHORT_HASH
from ketrag_fast.storage.manifest import UNEMBEDDED, Manifest, StageRecord
from ketrag_fast.systems.planning import planned_stages, published_stages
from ketrag_fast.systems.shared.cutting import cut_rows
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage, StageContext, fingerprint_of
from ketrag_fast.types import BuildReport, Document, Failure, StageReport

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.build_model import VectorSource

STAGES: Final = ("units", "links")
WITH_MODEL: Final = (*STAGES, "vectors", "unit_search", "sentence_vectors")
"""The stages of an index that is changed by a delta, without a model and with one."""
_NOTHING: Final = StageRecord("", 0, "", 0.0, {})
LEAST: Final = 2_000
"""Units of the smallest index that `ketrag index` changes by a delta.

A smaller one is computed as a whole in 0.05 s. Before a query, the smallest is changed by a delta, too,
because that needs no NumPy, whose import takes 0.1 s.
"""
MOST: Final = 4_096
"""Documents of a delta, removed and new ones, before it is folded into a new base."""
RECENT: Final = 128
"""Documents from which a delta is no longer rewritten with each change, but followed by another one."""
_HEAD: Final = 8
"""Bytes of a hash by which a document is looked for."""
_FEW: Final = 32
"""Documents that are looked for one by one among all documents."""


@dataclass
class DocumentChanges:
    """The documents that change.

    Attributes:
        gone: rows of the published generation whose documents are removed or replaced.
        new: ids of documents that come, each with the row before which it comes.
        come: the row and the content hash of each document that `apply` added.
        grown: characters of the documents that come, less those of the documents that go.
    """

    gone: set[int] = field(default_factory=set)
    new: dict[str, int] = field(default_factory=dict)
    come: list[tuple[int, str]] = field(default_factory=list)
    grown: int = 0


@dataclass(frozen=True, slots=True)
class _Model:
    """The model of an index.

    Attributes:
        fingerprint: Its fingerprint.
        variants: The variants of the stages that depend on it, if all vectors are computed.
        with_placeholders: The same if some are not.
    """

    fingerprint: str
    variants: Mapping[str, str]
    with_placeholders: Mapping[str, str]


class Deltas:
    """Changes of one index by deltas; see `start_deltas`."""

    def __init__(
        self,
        build: Build,
        base: Generation,
        stages: Sequence[Stage],
        model: _Model | None,
        has_placeholders: bool,
    ) -> None:
        self._build = build
        self._layout, self._tables, self._settings = build.layout, build.tables, build.settings
        self._base = base
        self._stages = stages
        self._names = tuple(stage.name for stage in stages)
        self._model = model
        self._has_placeholders = has_placeholders
        self._contents = build.tables.content_bytes()
        self._characters = build.tables.characters()
        self._source: VectorSource | None = None
        """The model that encoded new documents, closed."""
        self._unembedded = 0
        """Passages of the delta that was written whose vectors are not computed yet."""

    def change_documents(self, change: Change) -> BuildReport | None:
        """Publish a change by documents and ids as a delta.

        Returns None if it must be another change, with the tables as they were. Arrays of the base that are
        damaged are computed again by a build of whole files.
        """
        read = Ingested()
        try:
            with self._tables.transaction():
                changed = self.apply(change, read)
                if changed is None:
                    return None
                record = None
                if changed.gone or changed.new:
                    # Hashing all hashes needs nothing that is computed meanwhile, and releases the GIL.
                    from concurrent.futures import ThreadPoolExecutor

                    with ThreadPoolExecutor(1, thread_name_prefix="ketrag-totals") as pool:
                        totals = pool.submit(self._totals, changed)
                        record = self._write(changed, lambda: totals.result().fingerprint)
                    if record is None:
                        raise _NeedsWhole
                    self._tables.set_totals(totals.result())
        except (_NeedsWhole, IndexDamaged):
            return None
        return self._report(read, record)

    def publish_difference(self, read: Ingested) -> BuildReport | None:
        """Publish the documents that reading the sources changed as a delta.

        Returns None if the index must be computed as a whole, also if its arrays are damaged.
        """
        if not (read.added or read.updated or read.removed or self.can_complete):
            return None  # a build without changes folds the delta
        try:
            changed = self.difference()
            record = None if changed is None else self._write(changed, lambda: read.fingerprint)
        except IndexDamaged:
            return None
        return None if record is None else self._report(read, record)

    @property
    def can_complete(self) -> bool:
        """Whether this update before a query computes vectors that an earlier one left out."""
        return self._has_placeholders and self._build.is_refresh and not self._build.words_only

    def _report(self, read: Ingested, record: StageRecord | None) -> BuildReport:
        """Publish a delta, if one was written, and report what was changed."""
        stored = self._base.manifest
        manifest = stored if record is None else self.publish(record)
        seconds = 0.0 if record is None else record.seconds
        read.documents = int(manifest.documents["count"])
        return read.report(
            manifest,
            changed=record is not None,
            stages=(StageReport(DELTA, "reused" if record is None else "ran", seconds, 0),),
            settings_changed=self._build.resolved.differences,
            usage=usage_of(self._tables, stored.stages, self._source),
        )

    def apply(self, change: Change, read: Ingested) -> DocumentChanges | None:
        """Change the tables, count in `read`, and return what changed.

        Returns None, with the tables as they were, if a delta cannot hold it. Call it in a transaction.
        """
        paths, given = split_sources(change.sources)
        documents = [usable_document(document) for document in given or ()]
        if paths or change.others != "keep" or change.where is not None or any(map(is_glob, change.remove)):
            return None
        checked = [check_document(document) for document in documents]
        if any(problem is not None for _, problem in checked):
            return None
        ids = [document.id for document in documents]
        names = [*ids, *change.remove]
        if self._published() + 2 * len(names) > MOST or len(set(names)) < len(names):
            return None
        known = self._tables.known(names)
        rows = self._rows(known)
        if rows is None or self._tables.is_removed(ids):
            return None
        done = DocumentChanges()
        end = self._end_of_program() if documents else (0, 0, 0)
        for name in change.remove:
            if name not in known:
                read.failures.append(Failure(name, "unknown", "the index has no such document"))
                continue
            done.grown -= self._tables.characters_of([known[name].key])
            done.gone.add(rows[name])
            self._tables.read_again([(known[name].source, known[name].place)])
            self._tables.remove([known[name].key])
            self._tables.set_removed([name], removed=True)
            read.removed += 1
        source, row, place = end
        for document, (content, _) in zip(documents, checked, strict=True):
            stored = known.get(document.id)
            if stored is not None and (stored.source, stored.content) == (source, content):
                continue
            stays = stored is not None and stored.source == source
            at = rows[document.id] if stays else row
            self._put(document, content, stored, (source, stored.place if stored and stays else place), done)
            if stored is None:
                read.added += 1
            else:
                read.updated += stored.content != content
                done.gone.add(rows[document.id])
            done.new[document.id] = at
            done.come.append((at, content))
            place += not stays
        return done

    def _put(
        self,
        document: Document,
        content: str,
        stored: Known | None,
        position: tuple[int, int],
        done: DocumentChanges,
    ) -> None:
        """Add a document, or replace the one with its id; it then belongs to the program."""
        done.grown += len(document.text)
        if stored is None:
            self._tables.insert([(document, *position, content)])
        else:
            done.grown -= self._tables.characters_of([stored.key])
            if stored.source != position[0]:
                self._tables.read_again([(stored.source, stored.place)])
            self._tables.update(stored.key, document, *position, content)

    def _end_of_program(self) -> tuple[int, int, int]:
        """Return the source of a program's documents, the published row behind it, and its next position."""
        self._tables.add_sources([("documents", "documents", "")])
        source = self._tables.program_source() or 0
        is_last = source == max(row.number for row in self._tables.sources())
        end = len(self._contents) // HASH_BYTES if is_last else self._tables.count_through(source)
        return source, end, self._tables.last_place(source) + 1

    def difference(self) -> DocumentChanges | None:
        """Compare the documents of the tables with those that are published.

        Returns None if the documents that stay are in another order, or too many others changed.
        """
        from ketrag_fast.building.delta_difference import difference

        found = difference(self._base, self._tables, MOST - self._published())
        return None if found is None else DocumentChanges(*found)

    def _published(self) -> int:
        """Return the number of documents that the published delta changes."""
        return 0 if self._base.delta is None else self._base.delta.changed

    def _rows(self, known: Mapping[str, Known]) -> dict[str, int] | None:
        """Return the published rows of documents, which are their numbers in the tables.

        Returns None if the hashes of two documents begin alike, or the published ones are others.
        """
        contents = [bytes.fromhex(one.content) for one in known.values()]
        if len(known) > _FEW:
            from ketrag_fast.building.delta_difference import rows_of

            every = rows_of(self._contents, contents) or [-1] * len(known)
        else:
            every = [self._row(content) for content in contents]
        rows = dict(zip(known, every, strict=True))
        return rows if all(self._is_at(rows[name], one) for name, one in known.items()) else None

    def _row(self, content: bytes) -> int:
        """Return the number of a document in the tables; -1 if another one's hash begins alike."""
        head, rows, at = content[:_HEAD], [], self._contents.find(content[:_HEAD])
        while at >= 0:
            if at % HASH_BYTES == 0:
                rows.append(at // HASH_BYTES)
            at = self._contents.find(head, at + 1)
        return rows[0] if len(rows) == 1 else -1

    def _is_at(self, row: int, stored: Known) -> bool:
        """Return whether a published row is that of a document."""
        hashes = self._base.stages["units"].columns["document_hashes"]
        return 0 <= row < len(hashes) and bytes(hashes[row]) == bytes.fromhex(stored.content)[:SHORT_HASH]

    def _totals(self, changed: DocumentChanges) -> DocumentTotals:
        """Return what depends on all documents after `apply` changed them, without reading them again."""
        now, at = [], 0
        for row, content in sorted([*changed.come, *((row, "") for row in changed.gone)], key=_before_row):
            now += [self._contents[at * HASH_BYTES : row * HASH_BYTES], bytes.fromhex(content)]
            at = row if content else row + 1
        hashes = b"".join([*now, self._contents[at * HASH_BYTES :]])
        return DocumentTotals(hashes, fingerprint_of_hashes(hashes), self._characters + changed.grown)

    def _write(self, changed: DocumentChanges, fingerprint: Callable[[], str]) -> StageRecord | None:
        """Write the delta of the changed documents; return None if the index must be computed as a whole.

        `fingerprint` returns that of the tables.
        """
        start, settings = time.monotonic(), self._settings
        unembedded: Unembedded | None = None
        if self._has_placeholders:
            from ketrag_fast.building.placeholders import PORTION, Unembedded

            unembedded = Unembedded(self._base, changed.gone)
            if not self._build.words_only:
                rows = unembedded.take(self._tables, PORTION if self._build.is_refresh else None)
                gone, coming = changed.gone.union(rows.values()), {**changed.new, **rows}
                changed = replace(changed, gone=gone, new=coming)
        known = self._tables.known(changed.new)
        new = sorted(changed.new, key=lambda name: (changed.new[name], known[name].source, known[name].place))
        documents = Documents.of(self._tables, new, cut=settings.cut == "sentences")
        context = StageContext(Meter(DELTA, self._build.callback, "documents"), settings.threads)
        published = self._base.stages["units"]
        cut, _ = cut_rows(
            documents,
            settings,
            context.threads,
            context.report,
            metadata="document_metadata_offsets" in published,
            lines="unit_lines" in published,
        )
        encoded: Mapping[str, NDArray[Any]] = {}
        self._unembedded = 0 if unembedded is None else unembedded.count
        if self._model is not None:
            from ketrag_fast.systems.shared.vectors import count_placeholders, encode_new  # they import NumPy

            with _open_source(self._build) as self._source:
                model = replace(context, model=self._source)
                encoded = encode_new(documents, cut.arrays(keep=True), settings, model)
            if self._build.words_only:
                self._unembedded += count_placeholders(encoded)
        found = patches_of(
            {stage: self._base.stages[stage] for stage in self._names},
            sorted(changed.gone),
            [changed.new[name] for name in new],
            NewDocuments(cut, documents.hash_bytes(), encoded),
            settings.language,
            self._behind(),
        )
        if found is None or self._lost_metadata(found, changed):
            return None
        documents_now = fingerprint()
        is_whole = not self._unembedded
        fingerprints = _fingerprints(self._stages, settings, documents_now, self._model, is_whole)
        arrays = delta_arrays(found, fingerprints)
        folder = self._layout.work / DELTA
        remove_folder(folder)  # of a build that was killed
        seconds = time.monotonic() - start
        return write_stage(Stage(DELTA, 1, (), (), ""), documents_now, folder, arrays, seconds)

    def _behind(self) -> list[Mapping[str, Arrays]]:
        """Return the levels whose changes become part of the delta that is written."""
        delta = self._base.delta
        if delta is None or (delta.recent >= RECENT and BEFORE not in delta.stages):
            return []
        return [self._base.stages] if delta.recent < RECENT else [self._base.stages, delta.below.arrays]

    def _lost_metadata(self, found: tuple[Any, ...], changed: DocumentChanges) -> bool:
        """Return whether the last document with metadata went: a build from scratch then stores none.

        A document without metadata takes the two bytes of an empty object, and any other more.
        """
        sizes = {name: length for name, _, _, _, length in found[0]}
        count = len(self._contents) // HASH_BYTES - len(changed.gone) + len(changed.new)
        return sizes.get("units.document_metadata_blob") == len("{}") * count

    def _about(self, record: StageRecord) -> dict[str, Any]:
        about = {"count": self._tables.count(), "fingerprint": record.fingerprint}
        return {**about, UNEMBEDDED: self._unembedded} if self._unembedded else about

    def publish(self, record: StageRecord) -> Manifest:
        """Publish a delta that was written."""
        base, folder, levels = self._base, self._layout.work / DELTA, self._behind()
        records = base.records()
        parts = [(base.folder / name, records[name]) for name in self._names]
        if DELTA in records and not levels:
            parts.append((base.folder / DELTA, replace(records[DELTA], name=BEFORE)))
        elif BEFORE in records and len(levels) == 1:
            parts.append((base.folder / BEFORE, records[BEFORE]))
        manifest = publish(
            self._layout,
            [*parts, (folder, record)],
            settings=build_settings(self._settings),
            documents=self._about(record),
            version=base.manifest.version,
            models=base.manifest.models,
        )
        discard_folder(folder)
        return manifest


class _NeedsWhole(Exception):
    """A change that a delta cannot hold; it undoes what was done in the tables."""


def start_deltas(build: Build, least: int | None = None) -> Deltas | None:
    """Prepare to store a change as a delta; None if the index has too few units, or other stages."""
    settings, base = build.settings, build.base
    if base is None or settings.llm not in (None, "none") or settings.verify == "sizes":
        return None
    published = base.manifest
    stages: Sequence[Stage] | None = published_stages(published, settings)
    if stages is None:
        stages = planned_stages(build.stages, settings, False)
    names = tuple(stage.name for stage in stages)
    if names not in (STAGES, WITH_MODEL) or tuple(published.stages) != names:
        return None
    if published.stages.get("unit_search", _NOTHING).files:
        return None
    if dict(published.settings) != build_settings(settings) or "llm" in published.models:
        return None
    documents = str(published.documents.get("fingerprint"))
    if build.tables.fingerprint() != documents:
        return None  # a build changed the tables and was stopped
    units = published.stages["units"].files["unit_tokens"].shape[0]
    if units < (LEAST if least is None else least):
        return None
    model = None
    if names == WITH_MODEL:
        model = _known_model(build, base)
        from ketrag_fast.systems.shared.hnsw_proposals import kind  # it imports NumPy

        if model is None or kind(units + MOST, settings):
            return None
    elif any(stage.look is not None or stage.variant is not None for stage in stages):
        return None
    stored = {name: published.stages[name].fingerprint for name in names}
    is_whole = _fingerprints(stages, settings, documents, model) == stored
    if not is_whole and (model is None or _fingerprints(stages, settings, documents, model, False) != stored):
        return None  # other versions or settings computed the published arrays
    if base.verify != settings.verify:  # builders open without checksums
        base = open_generation(base.folder, settings.verify)
    return Deltas(build, base, stages, model, not is_whole)


def _open_source(build: Build) -> AbstractContextManager[VectorSource | None]:
    settings = build.settings
    limit = SpendingLimit(settings.limit_usd)
    return source_of(settings, build.layout, limit, build.trust, build.words_only)


def _known_model(build: Build, base: Generation) -> _Model | None:
    """Return the model of an index; None if it is another one, or is not compared with the stored one yet."""
    with _open_source(build) as source:
        if source is None or not source.is_identified:
            return None
        if base.manifest.models.get("embedder", {}).get("fingerprint") != source.fingerprint:
            return None
        from ketrag_fast.models.embedders.placeholders import PlaceholderSource
        from ketrag_fast.systems.shared.vectors import way_of

        variants = [
            {"vectors": variant, "sentence_vectors": way_of(source, variant)}
            for variant in ("", PlaceholderSource.variant)
        ]
        return _Model(source.fingerprint, *variants)


def _fingerprints(
    stages: Sequence[Stage], settings: Any, documents: str, model: _Model | None, is_whole: bool = True
) -> dict[str, str]:
    variants: Mapping[str, str] = {}
    if model is not None:
        variants = model.variants if is_whole else model.with_placeholders
    found = {DOCUMENTS: documents}
    for stage in stages:
        own = fingerprint_of(stage, settings, found, None if model is None else model.fingerprint)
        variant = variants.get(stage.name, "")
        found[stage.slot] = text_digest([own, variant]) if variant else own
    return {stage.name: found[stage.slot] for stage in stages}


def _before_row(change: tuple[int, str]) -> tuple[int, bool]:
    """Return a key by which what comes before a row precedes the row, which goes."""
    row, content = change
    return row, not content
