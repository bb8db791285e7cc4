"""`import_index`: build an index from what another program has extracted, without calling a model."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast.base.config import Settings
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import ConfigError, DocumentError, ReadOnly
from ketrag_fast.index import Index
from ketrag_fast.interchange.extracted import Extracted
from ketrag_fast.interchange.graphrag_reader import read_graphrag
from ketrag_fast.interchange.lightrag_reader import read_lightrag
from ketrag_fast.interchange.targets import remove, replaced
from ketrag_fast.models.extraction import records as clean
from ketrag_fast.models.extraction.grounding import Source
from ketrag_fast.models.extraction.recording import RecordingWriter
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.query.themes.summaries import WrittenSummary, sources_of, store_reports
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.durable import sync_folder
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.journal import Journal
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import unit_owners
from ketrag_fast.types import Document, ThemeSummary

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback

READERS: Final = {"graphrag": read_graphrag, "lightrag": read_lightrag}
"""The formats that can be imported."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        format: the format that was read.
        index: the folder of the new index.
        recording: the file with the extraction of each chunk, for `--llm replay:FILE`.
        documents, passages, entities, relations: what was read.
        entities_taken, relations_taken: what the index has.
        reports: the reports of communities that the index has.
        skipped: what could not be taken: kind, count and examples.
        notes: what was taken in another form, or left out on purpose.
    """

    format: str
    index: str
    recording: str
    documents: int
    passages: int
    entities: int
    relations: int
    entities_taken: int
    relations_taken: int
    reports: int = 0
    skipped: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ketrag import --json` prints."""
        own = {name: getattr(self, name) for name in self.__slots__}
        listed = {name: [dict(row) for row in own[name]] for name in ("skipped", "notes")}
        return {"schema": "ketrag/import/1", **own, **listed}


@enough_memory()
def import_index(
    format: str,
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    replace: bool = False,
    progress: Callback | None = None,
) -> ImportReport:
    """Build the index at `path` from the files of another program. No LLM is called.

    Documents are cut by the settings. An entity belongs to the chunks of its passages that name it, or to
    the chunk that shares most text with a passage if none does, so none is lost. The index appears when it
    is complete; next to it, `PATH.recording.jsonl` keeps the extraction. Reports of communities are stored as
    summaries, which `ask` with the mode `survey` reads.

    Args:
        format: `graphrag` or `lightrag`.
        folder: the output folder of GraphRAG, or the working directory of LightRAG.
        path: the folder of the new index.
        settings: settings of the build, such as `embedder`. `llm` and `core_ratio` are chosen here.
        replace: replace an existing index.
        progress: called at every step; stops the import by returning False.

    Raises:
        DocumentError: A file is missing, damaged, or of another program.
        ConfigError: The format is unknown, or the index or recording exists.
        BackendMissing: `graphrag` needs pyarrow.
        ReadOnly, StorageFull, Cancelled, BackendError: The index cannot be built.

    Examples:
        >>> from ketrag_fast import export_graph
        >>> exported = export_graph(index, "graphrag", scratch / "tables")
        >>> report = import_index("graphrag", scratch / "tables", scratch / "imported")
        >>> report.entities_taken == exported.nodes
        True
    """
    if format not in READERS:
        raise ConfigError(f"{format!r} is not an import format", hint=f"the formats are {', '.join(READERS)}")
    target = Path(path)
    recording = target.with_name(f"{target.name}.recording.jsonl")
    _require_free(target, recording, replace=replace)
    found = READERS[format](Path(folder))
    if not found.documents:
        raise DocumentError(f"{folder} holds no document with a text")
    given = settings or Settings()
    plain = given.having(llm="none", core_ratio=1.0)
    read = given.having(llm=f"replay:{recording.absolute()}", core_ratio=1.0)
    with _new_index(target, recording) as aside:
        first = Index.build(found.documents, aside, settings=plain, progress=progress)
        with first:
            places = passage_spans(found)
            extractions = assign_records(first, found, places)
        with RecordingWriter(recording, {"origin": format}) as writer:
            for (document, start, end), extraction in extractions:
                writer.write(document, start, end, extraction)
        with Index.build((), aside, settings=read, progress=progress) as index:
            entities, relations = _entity_graph_size(index)
            reports = _summaries(index, found, places)
            if reports:
                with Journal(Layout(aside).tables) as journal:
                    store_reports(journal, format, reports)
    return ImportReport(
        format,
        str(target),
        str(recording),
        **{name: len(getattr(found, name)) for name in ("documents", "passages", "entities", "relations")},
        entities_taken=entities,
        relations_taken=relations,
        reports=len(reports),
        skipped=tuple(found.skipped.rows()),
        notes=tuple(found.notes.rows()),
    )


def _entity_graph_size(index: Index) -> tuple[int, int]:
    """Return the number of entities and of relations in the entity graph of an index."""
    arrays = index.inspect.arrays()
    for stage in registry().stages:
        if stage.entity_graph is not None and stage.name in arrays:
            found = arrays[stage.name]
            return len(found[f"{stage.entity_graph.name}_offsets"]) - 1, len(found[stage.entity_graph.source])
    return 0, 0


# ---------------------------------------------------------------- the target


def _require_free(target: Path, recording: Path, *, replace: bool) -> None:
    if not target.absolute().parent.is_dir():
        raise ConfigError(
            f"cannot write {target}: the folder {target.absolute().parent} does not exist",
            hint="create the folder, or name another with -i/--index",
        )
    filled = target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir())))
    if filled and (target.is_symlink() or not target.is_dir() or not Layout(target).exists()):
        raise ReadOnly(
            f"{target} holds something other than an index", hint="name a new folder with -i/--index"
        )
    taken = target if filled else recording if recording.exists() else None
    if taken is not None and not replace:
        raise ConfigError(
            f"{taken} already exists", hint="name another index with -i/--index, or give --replace"
        )


@contextmanager
def _new_index(target: Path, recording: Path) -> Iterator[Path]:
    """Yield a new folder that becomes the index when the block ends; after an error nothing has changed."""
    aside = target.with_name(f".{target.name}.import-{os.getpid()}")
    with writing(target):
        try:
            with replaced(recording):
                yield aside
                with replaced(target):
                    aside.rename(target)
        finally:
            remove(aside)
            remove(recording.with_name(f"{recording.name}.part"))
        sync_folder(target.absolute().parent)


# ---------------------------------------------------------------- records of chunks

Span = tuple[str, int, int]
"""A document and a span of it in code points."""


@dataclass(slots=True)
class _ChunkRecords:
    """A chunk: its span, its case-folded text, and the records assigned to it."""

    span: Span
    source: Source
    entities: list[EntityRecord] = field(default_factory=list)
    relations: list[RelationRecord] = field(default_factory=list)


def assign_records(index: Index, found: Extracted, places: Sequence[Span]) -> list[tuple[Span, Extraction]]:
    """Assign the records of another program's passages to the chunks of the index; return them by chunk.

    `places` are the spans of the passages.
    """
    by_document = _chunks(index)

    def holders(passages: Sequence[int], names: Sequence[str]) -> list[_ChunkRecords]:
        return [chunk for passage in passages for chunk in _holders(by_document, places[passage], names)]

    for entity in found.entities:
        texts = _descriptions(entity.descriptions, found)
        made = (clean.entity(entity.name, entity.type, text, escaped=False) for text in texts)
        records = [record for record in made if record is not None]
        if not records:
            found.skipped.add("entities whose name is unusable", entity.name)
            continue
        chunks = holders(entity.passages, (records[0].name,))
        if not chunks:
            found.skipped.add("entities of documents without a chunk", entity.name)
        for chunk in chunks:
            chunk.entities += records
    for relation in found.relations:
        record = clean.relation(relation.source, relation.target, "", relation.weight, escaped=False)
        if record is None:
            ends = f"{relation.source} -- {relation.target}"
            found.skipped.add("relations of an entity with itself, or with unusable names", ends)
            continue
        names = record.source, record.target
        held = holders(relation.passages, names)
        if not held:
            found.skipped.add("relations of documents without a chunk", " -- ".join(names))
            continue
        # The strengths of one relation are added up again by the index.
        told = [
            clean.clean(text[: 4 * clean.MAX_DESCRIPTION], escaped=False)[: clean.MAX_DESCRIPTION]
            for text in _descriptions(relation.descriptions, found)
        ]
        share = record.strength / (len(held) * len(told))
        for chunk in held:
            chunk.relations += [RelationRecord(*names, text, share) for text in told]
    return [
        (chunk.span, Extraction(tuple(dict.fromkeys(chunk.entities)), tuple(chunk.relations)))
        for chunks in by_document.values()
        for chunk in chunks
    ]


def _summaries(index: Index, found: Extracted, places: Sequence[Span]) -> list[WrittenSummary]:
    """Return the reports as summaries that rest on all passages of their communities."""
    if not found.reports:
        return []
    units = index.inspect.arrays()["units"]
    order = np.lexsort((units["unit_span"][:, 0], unit_owners(units)))
    owners, spans = unit_owners(units)[order], units["unit_span"][order].astype(np.int64)
    numbers = {document.id: number for number, document in enumerate(index.inspect.stored())}

    def held(place: Span) -> list[int]:
        document, start, end = place
        number = numbers[document]
        first, last = np.searchsorted(owners, [number, number + 1])
        inside = (spans[first:last, 0] < end) & (spans[first:last, 1] > start)
        return list(order[first:last][inside].tolist())

    held_of = [held(place) if place[0] in numbers else [] for place in places]
    out = []
    for report in found.reports:
        own = sorted({unit for passage in report.passages for unit in held_of[passage]})
        if not own:
            found.skipped.add("reports of documents without a chunk", report.title)
            continue
        sources = frozenset(sources_of(units, own))
        about = ThemeSummary(report.title, report.summary)
        out.append(WrittenSummary(about, len(sources), report.is_wide, sources))
    return out


def _chunks(index: Index) -> dict[str, list[_ChunkRecords]]:
    """Return the chunks of each document, in order."""
    units = index.inspect.arrays()["units"]
    first = units["chunk_units"][:-1].astype("int64")
    last = units["chunk_units"][1:].astype("int64") - 1
    spans = zip(units["unit_span"][first, 0].tolist(), units["unit_span"][last, 1].tolist(), strict=True)
    listed: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for owner, span in zip(unit_owners(units)[first].tolist(), spans, strict=True):
        listed[owner].append(span)
    out = {}
    for number, document in enumerate(index.inspect.stored()):
        out[document.id] = [
            _ChunkRecords((document.id, start, end), Source(f"{document.title}\n{document.text[start:end]}"))
            for start, end in listed.get(number, ())
        ]
    return out


def passage_spans(found: Extracted) -> list[Span]:
    """Return the span of each passage in its document; the whole document if its text is not found there."""
    documents = found.documents
    after: dict[int, int] = {}
    out = []
    for passage in found.passages:
        document: Document = documents[passage.document]
        text = passage.text.strip().strip("\ufffd")  # a token may be cut inside a character
        at = document.text.find(text, after.get(passage.document, 0))
        if at < 0:
            at = document.text.find(text)
        if at < 0:
            found.notes.add("passages that are not in the text of their document", passage.id)
            out.append((document.id, 0, len(document.text)))
            continue
        after[passage.document] = at + 1
        out.append((document.id, at, at + len(text)))
    return out


def _holders(
    by_document: Mapping[str, Sequence[_ChunkRecords]], place: Span, names: Sequence[str]
) -> list[_ChunkRecords]:
    """Return the chunks of a passage that contain all the names, else one of them, else its main chunk."""
    document, start, end = place
    chunks = by_document.get(document, ())
    begin = bisect_left(chunks, start + 1, key=lambda chunk: chunk.span[2])
    near = list(takewhile(lambda chunk: chunk.span[1] < end, islice(chunks, begin, None)))
    if not near:  # between two chunks is only white space
        before = max(begin - 1, 0)
        return list(chunks[before : before + 1])
    if len(near) == 1:
        return near
    counts = [sum([chunk.source.holds(name) for name in names]) for chunk in near]
    most = max(counts)
    if most:
        return [chunk for chunk, count in zip(near, counts, strict=True) if count == most]
    return [max(near, key=lambda chunk: min(chunk.span[2], end) - max(chunk.span[1], start))]


def _descriptions(texts: Sequence[str], found: Extracted) -> Sequence[str]:
    """Return the descriptions, at least one; count those that will be cut."""
    for text in texts:
        if len(text) > clean.MAX_DESCRIPTION:
            found.notes.add(f"descriptions cut to {clean.MAX_DESCRIPTION:,} characters", text)
    return texts or ("",)
