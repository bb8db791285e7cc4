"""Change a few documents of a large index at the cost of the change: publish a delta next to the base.

The tables change as in any build. Instead of new arrays, the changes of the published ones are computed and
stored (`storage.delta`). A change by documents and ids is applied to the tables here, without looking at
the others; after sources were read, all documents are compared with the published ones. Whatever this
cannot do is left to an ordinary build, which computes the arrays of all documents and so also folds the
delta into a new base: other modes, purges, documents in another order, the first document with headings,
metadata or another language than English.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Resolved, build_settings
from ketrag_fast.base.progress import Callback, Meter
from ketrag_fast.build.async_writer import write_stage
from ketrag_fast.build.file_reading import check_document
from ketrag_fast.build.ingest import Change
from ketrag_fast.build.sources import split_sources
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.readers import is_glob
from ketrag_fast.storage.delta import DELTA, NewDocument, delta_arrays, patches_of
from ketrag_fast.storage.document_hashes import fingerprint_of as documents_fingerprint
from ketrag_fast.storage.durable import discard_folder, remove_folder
from ketrag_fast.storage.file_records import REPAIR
from ketrag_fast.storage.generation import Generation, open_generation, publish
from ketrag_fast.storage.layout import SHORT_HASH, Layout
from ketrag_fast.storage.manifest import Manifest, StageRecord
from ketrag_fast.storage.tables import Known, Tables
from ketrag_fast.systems.shared.units import cut_new_documents
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage, StageContext, fingerprint_of
from ketrag_fast.types import Document, Failure

STAGES: Final = ("units", "links")
LEAST: Final = 2_000
"""Units of the smallest index that is changed by a delta."""
MOST: Final = 4_096
"""Documents of a delta, removed and new ones, before it is folded into a new base."""
_FEW: Final = 32
"""Documents whose hashes are replaced one by one among those of all documents."""


@dataclass
class DocumentChanges:
    """The documents of the delta while they change, and what was changed."""

    gone: set[int]
    new: dict[str, NewDocument]
    added: int = 0
    updated: int = 0
    removed: int = 0
    unknown: list[Failure] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Whether a document was added, updated or removed."""
        return bool(self.added or self.updated or self.removed)


class Deltas:
    """Changes of one index by deltas; see `start`."""

    def __init__(
        self, layout: Layout, tables: Tables, base: Generation, resolved: Resolved, stages: Sequence[Stage]
    ) -> None:
        self._layout = layout
        self._tables = tables
        self._base = base
        self._settings = resolved.settings
        self._stages = stages
        delta = base.delta
        self._arrays = base.stages if delta is None else delta.base
        self._count = len(self._arrays["units"]["document_hashes"])
        self._contents = tables.contents()
        self._edits: list[tuple[str, str]] = []

    @classmethod
    def start(
        cls,
        layout: Layout,
        tables: Tables,
        base: Generation | None,
        resolved: Resolved,
        stages: Sequence[Stage],
    ) -> Deltas | None:
        """Return the changes by deltas of an index, or None if it is too small or has other stages."""
        settings = resolved.settings
        if base is None or tuple(base.manifest.stages) != STAGES:
            return None
        if tuple(stage.name for stage in stages) != STAGES or settings.verify == "sizes":
            return None
        if dict(base.manifest.settings) != build_settings(settings) or base.manifest.models:
            return None
        if tables.fingerprint() != base.manifest.documents.get("fingerprint"):
            return None  # a build changed the tables and was stopped
        units = base.manifest.stages["units"].files["unit_tokens"].shape[0]
        if units < LEAST or _is_other(stages, base, settings, str(base.manifest.documents["fingerprint"])):
            return None
        whole = open_generation(base.folder, settings.verify)  # builders open without checksums
        return cls(layout, tables, whole, resolved, stages)

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
        delta = self._base.delta
        done = (
            DocumentChanges(set(delta.gone), {one.id: one for one in delta.new})
            if delta
            else DocumentChanges(set(), {})
        )
        if len(done.gone) + len(done.new) + 2 * (len(documents) + len(change.remove)) > MOST:
            return None
        ids = [document.id for document in documents]
        known = self._tables.known([*ids, *change.remove])
        contents = [check_document(document) for document in documents]
        marked = self._tables.is_removed(ids)
        if len(set(ids) | set(change.remove)) < len(ids) + len(change.remove) or marked:
            return None
        if any(problem is not None for _, problem in contents):
            return None
        source = self._tables.last_source()
        if source is None or source.kind != "documents":
            return None
        if any(known[name].source != source.number for name in ids if name in known):
            return None
        rows = {name: self._row(one) for name, one in known.items() if name not in done.new}
        if any(row is None for row in rows.values()):
            return None
        for name in change.remove:
            self._remove(name, known, rows, done)
        place = self._tables.last_place(source.number) + 1
        for document, (content, _) in zip(documents, contents, strict=True):
            stored = known.get(document.id)
            if stored is None:
                self._tables.insert([(document, source.number, place, content)])
                self._edits.append(("", content))
                done.new[document.id] = NewDocument(document.id, self._count, place)
                place, done.added = place + 1, done.added + 1
            elif stored.content != content:
                self._update(document, content, stored, rows, done)
        return done

    def difference(self) -> DocumentChanges | None:
        """Compare the documents of the tables with those of the base.

        Returns None if the documents that stay are in another order, or too many others changed.
        """
        now = np.ascontiguousarray(self._tables.contents()[:, :SHORT_HASH])
        rows = _positions(np.ascontiguousarray(self._arrays["units"]["document_hashes"]), now)
        if rows is None:
            return None
        kept, new = rows[rows >= 0], np.flatnonzero(rows < 0)
        if (np.diff(kept) <= 0).any() or self._count - len(kept) + len(new) > MOST:
            return None
        stays = np.zeros(self._count, np.bool_)
        stays[kept] = True
        following = np.append(kept, self._count)[np.cumsum(rows >= 0)[new]]
        names = self._tables.ids_at(new.tolist())
        known = self._tables.known(names)
        before = dict(zip(names, following.tolist(), strict=True))
        found = {name: NewDocument(name, before[name], known[name].place) for name in names}
        return DocumentChanges(set(np.flatnonzero(~stays).tolist()), found)

    def _row(self, stored: Known) -> int | None:
        """Return the row of a document in the base."""
        hashes = self._arrays["units"]["document_hashes"]
        wanted = np.frombuffer(bytes.fromhex(stored.content)[:SHORT_HASH], np.uint8)
        heads = np.ascontiguousarray(hashes).view(np.uint64)
        found = np.flatnonzero((heads == wanted.view(np.uint64)).all(axis=1))
        return int(found[0]) if len(found) == 1 else None

    def _remove(
        self, name: str, known: Mapping[str, Known], rows: Mapping[str, int | None], done: DocumentChanges
    ) -> None:
        stored = known.get(name)
        if stored is None:
            done.unknown.append(Failure(name, "unknown", "the index has no such document"))
            return
        self._tables.remove([stored.key])
        self._edits.append((stored.content, ""))
        self._tables.set_removed([name], removed=True)
        done.removed += 1
        row = rows.get(name)
        if row is None:
            del done.new[name]
        else:
            done.gone.add(row)

    def _update(
        self,
        document: Document,
        content: str,
        stored: Known,
        rows: Mapping[str, int | None],
        done: DocumentChanges,
    ) -> None:
        self._tables.update(stored.key, document, stored.source, stored.place, content)
        self._edits.append((stored.content, content))
        done.updated += 1
        row = rows.get(document.id)
        if row is not None:
            done.gone.add(row)
            done.new[document.id] = NewDocument(document.id, row, stored.place)

    def _fingerprint(self) -> str:
        """Return the fingerprint of the changed tables; for a few changes without reading them again."""
        if len(self._edits) > _FEW:
            return self._tables.fingerprint()
        contents, new = self._contents.copy(), []
        heads = contents[:, :8].copy().view(np.uint64).reshape(-1)
        stays = np.ones(len(contents), np.bool_)
        for before, after in self._edits:
            if not before:
                new.append(bytes.fromhex(after))
                continue
            old = np.frombuffer(bytes.fromhex(before), np.uint8)
            found = np.flatnonzero(heads == old[:8].view(np.uint64)[0])
            row = found[(self._contents[found] == old).all(axis=1)]
            if after:
                contents[row] = np.frombuffer(bytes.fromhex(after), np.uint8)
            else:
                stays[row] = False
        added = np.frombuffer(b"".join(new), np.uint8).reshape(-1, contents.shape[1])
        now = np.concatenate([contents[stays], added])
        self._tables.content_hashes.remember(now)
        return documents_fingerprint(now)

    def write(
        self, changed: DocumentChanges, callback: Callback | None, fingerprint: str | None = None
    ) -> StageRecord | None:
        """Write the delta of the changed documents; return None if the index must be computed as a whole.

        `fingerprint` is that of the tables, if it is known.
        """
        start, settings = time.monotonic(), self._settings
        fingerprint = fingerprint or self._fingerprint()
        known = self._tables.known(changed.new)
        if missing := changed.new.keys() - known.keys():
            raise IndexDamaged(
                f"the delta has the document {min(missing)!r}, which the tables lack", hint=REPAIR
            )
        new = sorted(
            changed.new.values(), key=lambda one: (one.before, known[one.id].source, known[one.id].place)
        )
        gone = np.array(sorted(changed.gone), np.uint32)
        documents = Documents.of(self._tables, [one.id for one in new], cut=settings.cut == "sentences")
        context = StageContext(Meter(DELTA, callback, "documents"), settings.threads)
        cut = cut_new_documents(
            documents, settings, context, "document_metadata_offsets" in self._arrays["units"]
        )
        found = patches_of(
            {stage: self._arrays[stage] for stage in STAGES},
            gone,
            np.array([one.before for one in new], np.uint32),
            cut,
            settings.language,
        )
        if found is None or self._lost_metadata(found):
            return None
        records = self._base.records()
        base = {stage: records[stage].fingerprint for stage in STAGES}
        now = _fingerprints(self._stages, settings, fingerprint)
        arrays = delta_arrays(found, gone.tolist(), new, base, now)
        folder = self._layout.work / DELTA
        remove_folder(folder)  # of a build that was killed
        return write_stage(Stage(DELTA, 1, (), (), ""), fingerprint, folder, arrays, time.monotonic() - start)

    def _lost_metadata(self, found: tuple[Any, ...]) -> bool:
        """Return whether the last document with metadata went: a build from scratch then stores none.

        A document without metadata takes the two bytes of an empty object, and any other more.
        """
        sizes = {name: length for name, _, _, _, length in found[0]}
        return sizes.get("units.document_metadata_blob") == len("{}") * self._tables.count()

    def publish(self, record: StageRecord) -> Manifest:
        """Publish a delta that was written."""
        records, folder = self._base.records(), self._layout.work / DELTA
        manifest = publish(
            self._layout,
            [*((self._base.folder / name, records[name]) for name in STAGES), (folder, record)],
            settings=build_settings(self._settings),
            documents={"count": self._tables.count(), "fingerprint": record.fingerprint},
            version=self._base.manifest.version,
        )
        discard_folder(folder)
        return manifest


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


def _fingerprints(stages: Sequence[Stage], settings: Any, documents: str) -> dict[str, str]:
    found = {DOCUMENTS: documents}
    for stage in stages:
        found[stage.slot] = fingerprint_of(stage, settings, found)
    return {stage.name: found[stage.slot] for stage in stages}


def _is_other(stages: Sequence[Stage], base: Generation, settings: Any, documents: str) -> bool:
    """Return whether the published arrays were computed by other versions, or with other settings."""
    if any(stage.look is not None or stage.variant is not None for stage in stages):
        return True
    own = _fingerprints(stages, settings, documents)
    return own != {name: base.manifest.stages[name].fingerprint for name in STAGES}
