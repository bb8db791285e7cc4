"""Check that indexes can be merged, and fix the order of the documents.

The order does not depend on the argument order. Sources keep their order in the parts, with ties broken by
path. Documents of a source keep their order if one part has all of them or the parts are shards of one build;
otherwise they are ordered by id.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ketrag_fast.base.config import build_settings, resolve
from ketrag_fast.base.config.settings import Shards, shards_of
from ketrag_fast.building.async_writer import sound
from ketrag_fast.building.ingest import as_they_are
from ketrag_fast.building.reuse import HASHES, UNITS
from ketrag_fast.errors import ConfigError, DocumentError, IndexDamaged, IndexMissing, ModelMismatch
from ketrag_fast.models.embedders.fingerprint import Identity, closeness
from ketrag_fast.models.embedders.protocol import least_cosine
from ketrag_fast.records import dataclass
from ketrag_fast.storage.copy_tables import Place
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.generation import MANIFEST, current_number, open_generation
from ketrag_fast.storage.layout import SHORT_HASH, Layout
from ketrag_fast.storage.manifest import Manifest, read_manifest
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import settings_of
from ketrag_fast.systems.registry import registry
from ketrag_fast.types.wording import counted

Prefer = Literal["first", "last"]
SourceName = tuple[str, str]
"""('documents' or 'path', the path): documents given by programs come first."""
_SHOWN: Final = 20
_OWN: Final = frozenset({"shard", "keep_generations"})
"""Settings that may differ, because the arrays do not depend on them."""


@dataclass(frozen=True)
class MergePart:
    """One index to merge."""

    layout: Layout
    manifest: Manifest
    settings: Mapping[str, Any]
    sources: tuple[SourceRow, ...]
    known: Mapping[str, Known]

    @property
    def name(self) -> str:
        """The folder of the index."""
        return str(self.layout.root)

    @property
    def shards(self) -> Shards | None:
        """The shards of the documents that it holds; None for all."""
        return shards_of(self.settings["shard"])

    def mark(self) -> list[str]:
        """Return what identifies the part regardless of its folder."""
        return [self.manifest.digest, str(self.manifest.documents.get("fingerprint")), str(self.shards)]


def open_part(path: Path) -> MergePart:
    """Open an index to merge. Raises IndexMissing, IndexDamaged or IndexIncompatible."""
    layout = Layout(path)
    layout.require(f"name the folder of an index; `ketrag index SOURCE... -i {path}` builds one")
    number = current_number(layout)
    if number is None:
        raise IndexMissing(f"the index in {path} was never finished", hint=f"run `ketrag index -i {path}`")
    if not layout.tables.is_file():
        raise IndexDamaged(
            f"{layout.tables}, which holds the documents of the index, is missing",
            hint="restore a copy of it, or index the sources again",
        )
    manifest = read_manifest(layout.generation(number) / MANIFEST)
    settings = resolve(index=settings_of(manifest), presets=registry().table).settings
    with Tables(layout.tables, read_only=True) as tables:
        _verify(tables, layout.generation(number))
        same = as_they_are(tables).fingerprint == manifest.documents.get("fingerprint")
        sources, known = tuple(tables.sources()), tables.known()
    if not same:
        raise IndexMissing(
            f"the last build of the index in {path} was not finished: its documents are newer than its "
            "published generation",
            hint=f"finish it first: ketrag index -i {path}",
        )
    return MergePart(layout, manifest, build_settings(settings), sources, known)


def _verify(tables: Tables, folder: Path) -> None:
    """Raise IndexDamaged if a document is altered.

    Reads no text if the tables match the published arrays, whose checksums cover the texts.
    """
    try:
        generation = open_generation(folder, "sizes")
        record = generation.manifest.stages.get(UNITS)
        if record is not None and generation.delta is None and sound(folder / UNITS, record):
            units, hashes = generation.stages[UNITS], tables.contents()[:, :SHORT_HASH]
            if np.array_equal(units[HASHES], hashes):
                tables.verify_unchanged(units, np.arange(len(hashes)))
    except (IndexDamaged, ValueError):
        pass  # the documents may be intact, and if not, the error names them
    tables.verify()


def require_alike(parts: Sequence[MergePart]) -> None:
    """Raise ConfigError if settings differ, ModelMismatch if models differ; the message lists each."""
    first = parts[0]
    for other in parts[1:]:
        _same_model(first, other)
        readers = [part.manifest.models.get("llm", {}).get("reader") for part in (first, other)]
        apart = []
        for name, value in first.settings.items():
            moved = name == "embedder" or (name == "llm" and readers[0] == readers[1] is not None)
            if name not in _OWN and not moved and other.settings.get(name) != value:
                apart.append(
                    f"{name} is {value!r} in {first.name} and {other.settings.get(name)!r} in {other.name}"
                )
        if not apart and readers[0] != readers[1]:
            apart.append(
                f"the chunks of {first.name} and {other.name} were read by different models or prompts"
            )
        if apart:
            raise ConfigError(
                f"these indexes were built with different settings: {'; '.join(apart)}",
                hint=f"rebuild one with the settings of the other: ketrag index -i {other.name} --rebuild",
            )


def _same_model(one: MergePart, other: MergePart) -> None:
    models = [part.manifest.models.get("embedder") for part in (one, other)]
    specs = [part.settings["embedder"] for part in (one, other)]
    if not models[0] and not models[1] and specs[0] == specs[1]:
        return
    hint = f"`ketrag reembed -i {other.name} --embedder ...` makes its vectors with the other model"
    if not models[0] or not models[1]:
        raise ModelMismatch(
            f"{one.name} has vectors of {specs[0]}, and {other.name} of {specs[1]}", hint=hint
        )
    a, b = (Identity.from_json(model) for model in models if model)
    if a.fingerprint != b.fingerprint or a.dimension != b.dimension:
        raise ModelMismatch(
            f"{one.name} was built with the model {a.spec} (fingerprint {a.fingerprint[:12]}), and "
            f"{other.name} with {b.spec} ({b.fingerprint[:12]})",
            hint=hint,
        )
    if a.sample and b.sample:
        lowest = closeness(np.asarray(a.sample, np.float32), np.asarray(b.sample, np.float32))
        least = least_cosine(a.precision, b.precision)
        if not lowest >= least:
            raise ModelMismatch(
                f"{a.spec} gave {one.name} other vectors than {other.name} (lowest cosine {lowest:.4f} on "
                f"the sample, {least} is needed)",
                hint=hint,
            )


def shards_together(parts: Sequence[MergePart]) -> Shards | None:
    """Return the shards that the parts hold; None if they are complete, or the parts are not shards."""
    found = [part.shards for part in parts]
    if all(one is None for one in found):
        return None
    counts = {None if one is None else one.of for one in found}
    if len(counts) > 1:
        lines = "; ".join(f"{part.name} is {_about(part.shards)}" for part in parts[:_SHOWN])
        raise ConfigError(
            f"these are not shards of one build: {lines}",
            hint="merge the shards of each build first, then the results",
        )
    numbers = frozenset(number for one in found if one is not None for number in one.numbers)
    whole = Shards(numbers, next(one.of for one in found if one is not None))
    return whole if whole.lacking else None


def _about(shards: Shards | None) -> str:
    return "not a shard" if shards is None else f"shard {shards.text() or f'1/{shards.of}'}"


@dataclass(frozen=True)
class MergePlan:
    """The sources of the merged index, and for each part the new positions of its documents."""

    sources: tuple[SourceRow, ...]
    places: tuple[tuple[Place, ...], ...]


def plan_of(parts: Sequence[MergePart], prefer: Prefer | None, shards: Shards | None) -> MergePlan:
    """Plan the merge. Raises DocumentError if parts disagree about an id and `prefer` is None."""
    order = _source_order([[_source_name(row) for row in part.sources] for part in parts])
    numbers = {name: place for place, name in enumerate(order)}
    source_of = [{row.number: numbers[_source_name(row)] for row in part.sources} for part in parts]

    def place_of(number: int, known: Known) -> tuple[int, int]:
        return source_of[number][known.source], known.place

    chosen: dict[str, tuple[int, Known]] = {}
    conflicts: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        if chosen.keys().isdisjoint(part.known):
            chosen.update((name, (number, known)) for name, known in part.known.items())
            continue
        for name, known in part.known.items():
            old = chosen.setdefault(name, (number, known))
            if old[0] == number:
                continue
            if old[1].content != known.content:
                conflicts.setdefault(name, (old[0], number))
                if prefer == "last":
                    chosen[name] = (number, known)
            elif place_of(number, known) < place_of(*old):
                chosen[name] = (number, known)  # as in a build that reads both sources
    if conflicts and prefer is None:
        _refuse(parts, conflicts)
    by_source: dict[int, list[tuple[str, int, Known]]] = {}
    for name, (number, known) in chosen.items():
        by_source.setdefault(source_of[number][known.source], []).append((name, number, known))
    holders: list[set[int]] = [set() for _ in order]
    for number, part in enumerate(parts):
        for source in {known.source for known in part.known.values()}:
            holders[source_of[number][source]].add(number)
    together = all(part.shards is not None for part in parts)
    places: list[list[Place]] = [[] for _ in parts]
    for source, rows in by_source.items():
        in_place = together or len(holders[source]) == 1
        if not in_place or len({known.place for _, _, known in rows}) < len(rows):
            rows.sort(key=lambda row: row[0].encode("utf-8", "surrogatepass"))
        if in_place:
            rows.sort(key=lambda row: row[2].place)
        place = -1
        for _, number, known in rows:
            # Missing shards: keep the positions, because documents of the other shards go between them.
            place = max(place + 1, known.place) if shards is not None else place + 1
            places[number].append((known.key, source + 1, place))
    rows_of: dict[SourceName, list[SourceRow]] = {}
    for row in (row for part in parts for row in part.sources):
        rows_of.setdefault(_source_name(row), []).append(row)
    sources = tuple(
        SourceRow(number, name[0], min(row.label for row in rows_of[name]), name[1])
        for number, name in enumerate(order, 1)
    )
    return MergePlan(sources, tuple(map(tuple, places)))


def _source_name(row: SourceRow) -> SourceName:
    return ("path" if row.spec else "documents", row.spec)


def first_of(lines: Sequence[str]) -> str:
    """Return the first lines of a list, and the number of the others."""
    more = f" and {len(lines) - _SHOWN:,} more" if len(lines) > _SHOWN else ""
    return ", ".join(lines[:_SHOWN]) + more


def _source_order(orders: Sequence[Sequence[SourceName]]) -> list[SourceName]:
    """Return the sources in an order that agrees with all of the given ones; if these disagree, by name."""
    after: dict[SourceName, set[SourceName]] = {name: set() for order in orders for name in order}
    for order in orders:
        for one, other in pairwise(order):
            after[one].add(other)
    waits = Counter(other for others in after.values() for other in others)
    ready = [name for name in after if not waits[name]]
    heapq.heapify(ready)
    found = []
    while ready:
        name = heapq.heappop(ready)
        found.append(name)
        for other in after[name]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, other)
    return found if len(found) == len(after) else sorted(after)  # the parts contradict each other


def _refuse(parts: Sequence[MergePart], conflicts: Mapping[str, tuple[int, int]]) -> None:
    listed = first_of(
        [f"{name!r} ({parts[a].name}, {parts[b].name})" for name, (a, b) in sorted(conflicts.items())]
    )
    raise DocumentError(
        f"{counted(len(conflicts), 'id')} with different documents in these indexes: {listed}",
        hint="when they are merged, --prefer first (or last) keeps those of the index given first (last); "
        "or remove one of each: ketrag remove ID -i DIR",
    )
