"""Compare two open indexes: documents, settings, models, entity graphs, and rankings for questions.

Only the arrays of a generation are read, so older generations can be compared too.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.manifest import content_digest
from ketrag_fast.systems.index_settings import settings_of
from ketrag_fast.systems.planning import sizes_of
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import documents_of, read_strings, strings
from ketrag_fast.types import Context, Passage

_CUT: Final = ("chunk_tokens", "overlap", "split_level", "cut", "encoding")
"""The settings that decide how a text is cut into units."""
_BLANK: Final = string.whitespace.encode()
_PRINTED: Final = 20


class ComparedIndex(Protocol):
    """The parts of an open index that are compared."""

    @property
    def inspect(self) -> Any:
        """See `Index.inspect`."""

    def retrieve_many(self, queries: Sequence[str]) -> list[Context]:
        """See `Index.retrieve_many`."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Names only in the second index, names only in the first, and names in both whose contents differ."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Moved:
    """A question whose passages differ: the passages of each index by rank, and the share in both."""

    question: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    shared: float


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """The differences of two indexes.

    Rows of `settings`, `models` and `sizes` are (name, first, second value).
    """

    digests: tuple[str, str]
    documents: Changed
    reordered: bool
    """Whether the common documents are in a different order."""
    settings: tuple[tuple[str, Any, Any], ...]
    models: tuple[tuple[str, Any, Any], ...]
    sizes: tuple[tuple[str, int, int], ...]
    stages: tuple[str, ...]
    """Stages whose arrays differ or that only one index has."""
    entities: Changed
    relations: Changed
    questions: int
    rankings: tuple[Moved, ...]

    @property
    def same(self) -> bool:
        """Whether all arrays are equal byte for byte."""
        return self.digests[0] == self.digests[1]

    def to_json(self) -> dict[str, Any]:
        """Return the differences as `ketrag bench diff --json` prints them."""
        data = asdict(self)
        for name in ("settings", "models", "sizes"):
            data[name] = {row[0]: {"before": row[1], "after": row[2]} for row in data[name]}
        return {"schema": "ketrag/diff/1", "same": self.same, **data}


def difference(
    one: Generation,
    other: Generation,
    questions: Sequence[str] = (),
    contexts: tuple[Sequence[Context], Sequence[Context]] = ((), ()),
) -> IndexDifference:
    """Return the differences of two indexes; `contexts` are the results of both for `questions`."""
    manifests = one.manifest, other.manifest
    settings = [settings_of(manifest) for manifest in manifests]
    alike = all(settings[0].get(name) == settings[1].get(name) for name in _CUT)
    documents = [_documents(generation, exact=alike) for generation in (one, other)]
    digests = [
        {name: content_digest([record]) for name, record in manifest.stages.items()} for manifest in manifests
    ]
    graphs = [_entity_graph(generation) for generation in (one, other)]
    return IndexDifference(
        digests=(manifests[0].digest, manifests[1].digest),
        documents=_changes(*documents),
        reordered=[name for name in documents[0] if name in documents[1]]
        != [name for name in documents[1] if name in documents[0]],
        settings=_rows(*settings),
        models=_rows(*(_models(manifest.models) for manifest in manifests)),
        sizes=_rows(sizes_of(one.manifest.stages), sizes_of(other.manifest.stages), missing=0),
        stages=tuple(name for name, _, _ in _rows(*digests)),
        entities=_changes(graphs[0][0], graphs[1][0]),
        relations=_changes(graphs[0][1], graphs[1][1]),
        questions=len(questions),
        rankings=_rankings(questions, *contexts),
    )


def _rows(
    before: Mapping[str, Any], after: Mapping[str, Any], missing: Any = None
) -> tuple[tuple[str, Any, Any], ...]:
    """Return the names whose values differ, with both values."""
    pairs = ((name, before.get(name, missing), after.get(name, missing)) for name in {**before, **after})
    return tuple(row for row in pairs if row[1] != row[2])


def _models(models: Mapping[str, Any]) -> dict[str, str]:
    """Return each model with the parameters on which its vectors or replies depend."""
    marks = {}
    for name, about in models.items():
        mark = about.get("reader") or about.get("fingerprint")
        marks[name] = f"{about.get('spec')} ({str(mark)[:12]})"
    return marks


def _changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Changed:
    return Changed(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name, mark in before.items() if after.get(name, mark) != mark),
    )


def _documents(generation: Generation, *, exact: bool) -> dict[str, bytes]:
    """Return a hash of each document by id.

    If the units are cut differently, the texts are compared without blanks, because units do not include the
    blanks between them.
    """
    units = generation.stages["units"]
    _, starts = documents_of(units)
    ids, titles = read_strings(units, "document_ids"), strings(units, "document_titles")
    metadata = strings(units, "document_metadata") if "document_metadata_offsets" in units else None
    rows = np.append(starts, len(ids))
    edges = np.searchsorted(units["unit_document"], rows.astype(units["unit_document"].dtype))
    overlapping = bool(generation.manifest.settings.get("overlap"))
    hashes = {}
    for number, row in enumerate(rows[:-1].tolist()):
        first, last = edges[number : number + 2].tolist()
        parts = [metadata[0][slice(*metadata[1][row : row + 2].tolist())].tobytes() if metadata else b"{}"]
        if exact:
            parts.append(titles[0][slice(*titles[1][row : row + 2].tolist())].tobytes())
            parts += [units["unit_span"][first:last].tobytes(), _text(units, first, last)]
        elif overlapping:
            parts.append(b"".join(_tails(units, first, last)).translate(None, _BLANK))
        else:
            parts.append(_text(units, first, last).translate(None, _BLANK))
        hashes[ids[row]] = _mark(parts)
    return hashes


def _text(units: Mapping[str, NDArray[Any]], first: int, last: int) -> bytes:
    blob, offsets = strings(units, "unit_texts")
    return blob[int(offsets[first]) : int(offsets[last])].tobytes()


def _tails(units: Mapping[str, NDArray[Any]], first: int, last: int) -> Iterator[bytes]:
    """Yield the text of each unit without the overlap with earlier units of its row."""
    row, end = -1, 0
    for unit in range(first, last):
        owner = int(units["unit_document"][unit])
        begin, stop = units["unit_bytes"][unit].tolist()
        end = end if owner == row else 0
        yield _text(units, unit, unit + 1)[max(end - begin, 0) :]
        row, end = owner, max(end, stop)


def _entity_graph(generation: Generation) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return hashes of entities by name and of relations by their two entities; empty without a graph."""
    for stage in registry().stages:
        arrays, own = generation.stages.get(stage.name), stage.entity_graph
        if own is not None and arrays is not None:
            names = read_strings(arrays, own.name)
            ends = zip(arrays[own.source].tolist(), arrays[own.target].tolist(), strict=True)
            relations = (f"{names[a]} -- {names[b]}" for a, b in ends)
            return (
                dict(zip(names, _row_marks(arrays, own.entity_rows), strict=True)),
                dict(zip(relations, _row_marks(arrays, own.relation_rows), strict=True)),
            )
    return {}, {}


def _row_marks(arrays: Mapping[str, NDArray[Any]], names: Sequence[str]) -> Iterator[bytes]:
    """Yield a hash of each row of parallel arrays, some of which may be packed strings."""
    columns = [
        read_strings(arrays, name) if f"{name}_offsets" in arrays else map(repr, arrays[name].tolist())
        for name in names
    ]
    return (_mark([value.encode() for value in row]) for row in zip(*columns, strict=True))


def _mark(parts: Sequence[bytes]) -> bytes:
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.digest()


def _rankings(
    questions: Sequence[str], one: Sequence[Context], other: Sequence[Context]
) -> tuple[Moved, ...]:
    moved = []
    for question, *contexts in zip(questions, one, other, strict=True):
        before, after = (tuple(map(_place, context.passages)) for context in contexts)
        if before != after:
            every = set(before) | set(after)
            moved.append(Moved(question, before, after, len(set(before) & set(after)) / max(len(every), 1)))
    return tuple(moved)


def _place(passage: Passage) -> str:
    return f"{passage.document}:{passage.start}-{passage.end}"


def summary(compared: IndexDifference) -> list[str]:
    """Format the differences as lines of text; long lists are shortened."""
    lines = [f"digest {compared.digests[0][:16]} -> {compared.digests[1][:16]}"]
    if compared.same:
        lines = ["the indexes are equal byte for byte"]
    for what in ("documents", "entities", "relations"):
        names: Changed = getattr(compared, what)
        if not names:
            continue
        counts = (len(names.added), len(names.removed), len(names.changed))
        lines.append(f"{what}: {counts[0]:,} added, {counts[1]:,} removed, {counts[2]:,} changed")
        for sign, listed in (("+", names.added), ("-", names.removed), ("~", names.changed)):
            lines += [f"  {sign} {name}" for name in listed[:_PRINTED]]
            if len(listed) > _PRINTED:
                lines.append(f"  {sign} ... and {len(listed) - _PRINTED:,} more (--json lists them all)")
    if compared.reordered:
        lines.append("the documents in both are in a different order")
    for what in ("setting", "model", "size"):
        for name, before, after in getattr(compared, f"{what}s"):
            lines.append(f"{what} {name}: {_short_value(before)} -> {_short_value(after)}")
    if compared.stages:
        lines.append(f"stages that differ: {', '.join(compared.stages)}")
    if compared.questions:
        lines.append(f"questions: {compared.questions:,}, {len(compared.rankings):,} with other passages")
    for moved in compared.rankings[:_PRINTED]:
        lines.append(f"  {moved.question}  ({100 * moved.shared:.0f} % of the passages in both)")
        gone = [place for place in moved.before if place not in moved.after]
        new = [place for place in moved.after if place not in moved.before]
        lines += [f"    - {place}" for place in gone[:_PRINTED]]
        lines += [f"    + {place}" for place in new[:_PRINTED]]
        if not gone and not new:
            lines.append("    the same in a different order")
    return lines


def _short_value(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
