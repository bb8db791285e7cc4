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
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Resolved, build_settings
from ketrag_fast.base.progress import Callback, Meter
from ketrag_fast.building.async_writer import write_stage
from ketrag_fast.building.ingest import Change
from ketrag_fast.building.sources import check_document, split_sources
from ketrag_fast.readers import is_glob
from ketrag_fast.storage.arrays import Arrays
from ketrag_fast.storage.checksum import HASH_BYTES, text_digest
from ketrag_fast.storage.checksum import fingerprint_of as fingerprint_of_hashes
from ketrag_fast.storage.delta import BEFORE, DELTA, delta_arrays, patches_of
from ketrag_fast.storage.document_table import DocumentTotals, Known
from ketrag_fast.storage.durable import discard_folder, remove_folder
from ketrag_fast.storage.generation import Generation, open_generation, publish
from ketrag_fast.storage.layout import SHORT_HASH, Layout
from ketrag_fast.storage.manifest import Manifest, StageRecord
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.shared.hnsw_proposals import kind
from ketrag_fast.systems.shared.units import cut_new_documents
from ketrag_fast.systems.shared.vectors import encode_new
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage, StageContext, fingerprint_of
from ketrag_fast.types import Document, Failure

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource

STAGES: Final = ("units", "links")
WITH_MODEL: Final = (*STAGES, "vectors", "unit_search", "sentence_vectors")
"""The stages of an index that is changed by a delta, without a model and with one."""
_NOTHING: Final = StageRecord("", 0, "", 0.0, {})
OpenSource = Callable[[], AbstractContextManager["VectorSource | None"]]
LEAST: Final = 2_000
"""Units of the smallest index that is changed by a delta."""
MOST: Final = 4_096
"""Documents of a delta, removed and new ones, before it is folded into a new base."""
RECENT: Final = 128
"""Documents from which a delta is no longer rewritten with each change, but followed by another one."""
_FEW: Final = 32
"""Documents that are looked for one by one among all documents."""
_NEAR: Final = 1_024
"""Documents in front of and behind its expected position among which one is looked for first."""


@dataclass
class DocumentChanges:
    """The documents that change.

    Attributes:
        gone: rows of the published generation whose documents are removed or replaced.
        new: ids of documents that come, each with the row before which it comes.
    """

    gone: set[int] = field(default_factory=set)
    new: dict[str, int] = field(default_factory=dict)
    added: int = 0
    updated: int = 0
    removed: int = 0
    unknown: list[Failure] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Whether a document was added, updated or removed."""
        return bool(self.gone or self.new)


class Deltas:
    """Changes of one index by deltas; see `start`."""

    def __init__(
        self,
        layout: Layout,
        tables: Tables,
        base: Generation,
        resolved: Resolved,
        stages: Sequence[Stage],
        open_source: OpenSource,
        model: _Model | None,
    ) -> None:
        self.source: VectorSource | None = None
        """The model that encoded new documents, closed."""
        self._open_source = open_source
        self._model = model
        self._names = tuple(stage.name for stage in stages)
        self._layout = layout
        self._tables = tables
        self._base = base
        self._settings = resolved.settings
        self._stages = stages
        self._contents = tables.contents()
        self._characters = tables.characters()
        self._grown = 0
        """The characters of the documents that come, less those of the documents that go."""
        self._come: list[tuple[int, str]] = []
        """For each document that comes the published row before which it does, and its content hash."""

    @classmethod
    def start(
        cls,
        layout: Layout,
        tables: Tables,
        base: Generation | None,
        resolved: Resolved,
        stages: Sequence[Stage],
        open_source: OpenSource,
    ) -> Deltas | None:
        """Return the changes by deltas of an index, or None if it is too small or has other stages."""
        settings = resolved.settings
        names = tuple(stage.name for stage in stages)
        if base is None or names not in (STAGES, WITH_MODEL) or tuple(base.manifest.stages) != names:
            return None
        if settings.verify == "sizes" or base.manifest.stages.get("unit_search", _NOTHING).files:
            return None
        if dict(base.manifest.settings) != build_settings(settings) or "llm" in base.manifest.models:
            return None
        if tables.fingerprint() != base.manifest.documents.get("fingerprint"):
            return None  # a build changed the tables and was stopped
        units = base.manifest.stages["units"].files["unit_tokens"].shape[0]
        if units < LEAST:
            return None
        model = None
        if names == WITH_MODEL:
            model = _known_model(base, open_source)
            if model is None or kind(units + MOST, settings, settings.ann_from):
                return None
        if _is_other(stages, base, settings, str(base.manifest.documents["fingerprint"]), model):
            return None
        if base.verify != settings.verify:  # builders open without checksums
            base = open_generation(base.folder, settings.verify)
        return cls(layout, tables, base, resolved, stages, open_source, model)

    @property
    def manifest(self) -> Manifest:
        """The manifest of the published generation."""
        return self._base.manifest

    def apply(self, change: Change) -> DocumentChanges | None:
        """Change the tables, and return what changed; None, with the tables as they were, if it cannot.

        Call it in a transaction.
        """
        paths, documents = split_sources(change.sources)
        documents = documents or []
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
        end = self._end_of_program() if documents else None
        for name in change.remove:
            self._remove(name, known, rows, done)
        if end is not None:
            self._put(documents, [content for content, _ in checked], end, known, rows, done)
        return done

    def difference(self) -> DocumentChanges | None:
        """Compare the documents of the tables with those that are published.

        Returns None if the documents that stay are in another order, or too many others changed.
        """
        published = np.ascontiguousarray(self._base.stages["units"]["document_hashes"])
        rows = _positions(published, np.ascontiguousarray(self._tables.contents()[:, :SHORT_HASH]))
        if rows is None:
            return None
        count, kept, new = len(published), rows[rows >= 0], np.flatnonzero(rows < 0)
        if (np.diff(kept) <= 0).any() or self._published() + count - len(kept) + len(new) > MOST:
            return None
        stays = np.zeros(count, np.bool_)
        stays[kept] = True
        following = np.append(kept, count)[np.cumsum(rows >= 0)[new]]
        names = self._tables.ids_at(new.tolist())
        gone = set(np.flatnonzero(~stays).tolist())
        return DocumentChanges(gone, dict(zip(names, following.tolist(), strict=True)))

    def _published(self) -> int:
        """Return the number of documents that the published delta changes."""
        return 0 if self._base.delta is None else self._base.delta.changed

    def _rows(self, known: Mapping[str, Known]) -> dict[str, int] | None:
        """Return the published rows of documents, which are their numbers in the tables.

        Returns None if the hashes of two documents begin alike, or the published ones are others.
        """
        if len(known) > _FEW:
            wanted = np.frombuffer(b"".join(bytes.fromhex(one.content) for one in known.values()), np.uint8)
            found = _positions(self._contents, wanted.reshape(len(known), -1))
            every = [-1] * len(known) if found is None else found.tolist()
        else:
            every = [self._row(one) for one in known.values()]
        rows = dict(zip(known, every, strict=True))
        return rows if all(self._is_at(rows[name], one) for name, one in known.items()) else None

    def _row(self, stored: Known) -> int:
        """Return the number of a document in the tables; -1 if another one's hash begins alike."""
        wanted, rows = np.frombuffer(bytes.fromhex(stored.content), np.uint64), self._contents.view(np.uint64)
        # In the first source, and in the last one, it is near its position, unless many came or went.
        behind = self._tables.last_place(stored.source) - stored.place
        for near in (stored.place, len(rows) - 1 - behind):
            start = max(near - _NEAR, 0)
            found = np.flatnonzero((rows[start : max(near + _NEAR, 0)] == wanted).all(axis=1))
            if len(found) == 1:
                return start + int(found[0])
        found = np.flatnonzero(rows[:, 0] == wanted[0])
        return int(found[0]) if len(found) == 1 else -1

    def _is_at(self, row: int, stored: Known) -> bool:
        """Return whether a published row is that of a document."""
        if row < 0:
            return False
        start, stop = row * SHORT_HASH, (row + 1) * SHORT_HASH
        published = self._base.stages["units"].read_bytes("document_hashes", start, stop)
        return published.tobytes() == bytes.fromhex(stored.content)[:SHORT_HASH]

    def _remove(
        self, name: str, known: Mapping[str, Known], rows: Mapping[str, int], done: DocumentChanges
    ) -> None:
        stored = known.get(name)
        if stored is None:
            done.unknown.append(Failure(name, "unknown", "the index has no such document"))
            return
        self._grown -= self._tables.characters_of([stored.key])
        self._tables.remove([stored.key])
        self._tables.set_removed([name], removed=True)
        done.removed += 1
        done.gone.add(rows[name])

    def _end_of_program(self) -> tuple[int, int, int]:
        """Return the source of a program's documents, the published row behind it, and its next position."""
        self._tables.add_sources([("documents", "documents", "")])
        source = self._tables.program_source() or 0
        is_last = source == max(row.number for row in self._tables.sources())
        end = len(self._contents) if is_last else self._tables.count_through(source)
        return source, end, self._tables.last_place(source) + 1

    def _put(
        self,
        documents: Sequence[Document],
        contents: Sequence[str],
        end_of: tuple[int, int, int],
        known: Mapping[str, Known],
        rows: Mapping[str, int],
        done: DocumentChanges,
    ) -> None:
        """Add documents, or replace those with their ids; they then belong to the program."""
        source, end, place = end_of
        for document, content in zip(documents, contents, strict=True):
            stored = known.get(document.id)
            if stored is None:
                self._tables.insert([(document, source, place, content)])
                self._grown += len(document.text)
                done.added += 1
            elif stored.source == source and stored.content == content:
                continue
            else:
                stays = stored.source == source
                at = stored.place if stays else place
                self._grown += len(document.text) - self._tables.characters_of([stored.key])
                self._tables.update(stored.key, document, source, at, content)
                done.updated += stored.content != content
                done.gone.add(rows[document.id])
                if stays:
                    done.new[document.id] = rows[document.id]
                    self._come.append((rows[document.id], content))
                    continue
            done.new[document.id] = end
            self._come.append((end, content))
            place += 1

    def _totals(self, changed: DocumentChanges) -> DocumentTotals:
        """Return what depends on all documents after `apply` changed them, without reading them again."""
        now, at = [], 0
        for row, content in sorted([*self._come, *((row, "") for row in changed.gone)], key=_before_row):
            now.append(self._contents[at:row])
            now.append(np.frombuffer(bytes.fromhex(content), np.uint8).reshape(-1, HASH_BYTES))
            at = row if content else row + 1
        hashes = np.concatenate([*now, self._contents[at:]])
        return DocumentTotals(hashes, fingerprint_of_hashes(hashes), self._characters + self._grown)

    def write(
        self, changed: DocumentChanges, callback: Callback | None, fingerprint: str | None = None
    ) -> StageRecord | None:
        """Write the delta of the changed documents; return None if the index must be computed as a whole.

        `fingerprint` is that of the tables, if it is known.
        """
        if fingerprint is not None:
            return self._write(changed, callback, lambda: fingerprint)
        # Hashing all hashes releases the interpreter, and needs nothing that is computed meanwhile.
        with ThreadPoolExecutor(1, thread_name_prefix="ketrag-totals") as pool:
            totals = pool.submit(self._totals, changed)
            record = self._write(changed, callback, lambda: totals.result().fingerprint)
        self._tables.set_totals(totals.result())
        return record

    def _write(
        self, changed: DocumentChanges, callback: Callback | None, fingerprint: Callable[[], str]
    ) -> StageRecord | None:
        start, settings = time.monotonic(), self._settings
        known = self._tables.known(changed.new)
        new = sorted(changed.new, key=lambda name: (changed.new[name], known[name].source, known[name].place))
        documents = Documents.of(self._tables, new, cut=settings.cut == "sentences")
        context = StageContext(Meter(DELTA, callback, "documents"), settings.threads)
        cut = cut_new_documents(documents, settings, context, self._base.stages["units"])
        found = patches_of(
            {stage: self._base.stages[stage] for stage in self._names},
            np.array(sorted(changed.gone), np.uint32),
            np.array([changed.new[name] for name in new], np.uint32),
            {**cut, **self._encoded(documents, cut, context)},
            settings.language,
            self._behind(),
        )
        if found is None or self._lost_metadata(found, changed):
            return None
        documents_now = fingerprint()
        arrays = delta_arrays(found, _fingerprints(self._stages, settings, documents_now, self._model))
        folder = self._layout.work / DELTA
        remove_folder(folder)  # of a build that was killed
        seconds = time.monotonic() - start
        return write_stage(Stage(DELTA, 1, (), (), ""), documents_now, folder, arrays, seconds)

    def _encoded(
        self, documents: Documents, units: Mapping[str, NDArray[Any]], context: StageContext
    ) -> Mapping[str, NDArray[Any]]:
        """Return the vectors of new documents; nothing without a model."""
        if self._model is None:
            return {}
        with self._open_source() as source:
            self.source = source
            return encode_new(documents, units, self._settings, replace(context, model=source))

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
        count = len(self._contents) - len(changed.gone) + len(changed.new)
        return sizes.get("units.document_metadata_blob") == len("{}") * count

    def publish(self, record: StageRecord) -> Manifest:
        """Publish a delta that was written."""
        records, folder, levels = self._base.records(), self._layout.work / DELTA, self._behind()
        parts = [(self._base.folder / name, records[name]) for name in self._names]
        if DELTA in records and not levels:
            parts.append((self._base.folder / DELTA, replace(records[DELTA], name=BEFORE)))
        elif BEFORE in records and len(levels) == 1:
            parts.append((self._base.folder / BEFORE, records[BEFORE]))
        manifest = publish(
            self._layout,
            [*parts, (folder, record)],
            settings=build_settings(self._settings),
            documents={"count": self._tables.count(), "fingerprint": record.fingerprint},
            version=self._base.manifest.version,
            models=self._base.manifest.models,
        )
        discard_folder(folder)
        return manifest


def _before_row(change: tuple[int, str]) -> tuple[int, bool]:
    """Return a key by which what comes before a row precedes the row, which goes."""
    row, content = change
    return row, not content


def _positions(hashes: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the row of each of `wanted` among `hashes`, or -1; None if two of these begin alike."""
    heads, tails = (hashes.view(np.uint64)[:, column] for column in (0, 1))
    order = np.argsort(heads)
    ordered = heads[order]
    if (ordered[1:] == ordered[:-1]).any():
        return None
    own = wanted.view(np.uint64)
    place = np.minimum(np.searchsorted(ordered, own[:, 0]), max(len(order) - 1, 0))
    if not len(order):
        return np.full(len(wanted), -1, np.int64)
    rows = order[place]
    same = (heads[rows] == own[:, 0]) & (tails[rows] == own[:, 1])
    return np.where(same, rows, -1)


@dataclass(frozen=True, slots=True)
class _Model:
    """The fingerprint of an index's model, and the variants of the stages that depend on the model."""

    fingerprint: str
    variants: Mapping[str, str]


def _known_model(base: Generation, open_source: OpenSource) -> _Model | None:
    """Return the model of an index; None if it is another one, or is not compared with the stored one yet."""
    with open_source() as source:
        if source is None or not source.is_identified:
            return None
        if base.manifest.models.get("embedder", {}).get("fingerprint") != source.fingerprint:
            return None
        return _Model(source.fingerprint, {"sentence_vectors": "pooled" if source.pools_spans else ""})


def _fingerprints(
    stages: Sequence[Stage], settings: Any, documents: str, model: _Model | None
) -> dict[str, str]:
    found = {DOCUMENTS: documents}
    for stage in stages:
        own = fingerprint_of(stage, settings, found, None if model is None else model.fingerprint)
        variant = "" if model is None else model.variants.get(stage.name, "")
        found[stage.slot] = text_digest([own, variant]) if variant else own
    return {stage.name: found[stage.slot] for stage in stages}


def _is_other(
    stages: Sequence[Stage], base: Generation, settings: Any, documents: str, model: _Model | None
) -> bool:
    """Return whether the published arrays were computed by other versions, or with other settings."""
    if model is None and any(stage.look is not None or stage.variant is not None for stage in stages):
        return True
    own = _fingerprints(stages, settings, documents, model)
    return own != {stage.name: base.manifest.stages[stage.name].fingerprint for stage in stages}
