"""A random sample of documents, and totals of all documents extrapolated from it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.building.sources import (
    FileSelection,
    Sources,
    absolute,
    find_files,
    read_jobs,
    sandbox_pool,
    split_sources,
    usable_item,
)
from ketrag_fast.readers import Item, single
from ketrag_fast.readers.sandbox import ReadJob
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import NOTES

_SECONDS: Final = 3.0
"""Time after which no further file is opened."""
_DOCUMENTS: Final = 2000
_GIVEN: Final = "given"
"""Stands for the format of documents given as objects."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The drawn documents in the order of reading, and estimates for all documents.

    `read` is the number of documents that were read, `seconds` the time to read all. `known` is the share of
    the text that an index has.
    """

    drawn: tuple[Document, ...]
    documents: int
    characters: int
    read: int
    failures: int
    seconds: float
    known: float


def read_sample(sources: Sources, settings: Settings, room: int, held: frozenset[str]) -> Sample:
    """Read files in a random order for some seconds, and draw documents with about `room` characters.

    Documents that are read have equal chances. The text of the other files is estimated from their bytes, for
    each format separately. `held` are the contents of an index.
    """
    chance = random.Random(settings.seed)  # noqa: S311 - a sample, not a secret
    paths, given = split_sources(sources)
    listed, failures = _list_jobs(paths, settings)
    jobs = _shuffled(listed, chance)
    sizes = []
    for file, _ in jobs:
        try:
            sizes.append(file.size())
        except OSError:  # reading it reports the failure
            sizes.append(0)
    draw = _Draw(chance, room, held)
    begin = time.monotonic()
    with sandbox_pool(settings) as pool:
        for (_, kind), size, (_, items) in zip(jobs, sizes, pool.read(jobs), strict=False):
            draw.take(single(items), kind, size)
            if draw.count and time.monotonic() - begin > _SECONDS:
                break
        seconds = (time.monotonic() - begin) * sum(sizes) / max(draw.bytes.total(), 1)
    draw.take(given or (), _GIVEN, 1)
    totals = Counter({_GIVEN: 1})
    for (_, kind), size in zip(jobs, sizes, strict=True):
        totals[kind] += size
    return Sample(
        documents_within(draw.drawn, room, chance),
        draw.of_all(draw.documents, totals),
        draw.of_all(draw.characters, totals),
        draw.count,
        failures + draw.failures,
        seconds,
        draw.known / max(draw.characters.total(), 1),
    )


class _Draw:
    """Reservoir sampling of documents; counters of what was read of each format."""

    def __init__(self, chance: random.Random, room: int, held: frozenset[str]) -> None:
        self._chance, self._room, self._held = chance, room, held
        self.drawn: list[tuple[int, Document]] = []
        self._seen: set[str] = set()
        self.count = self.failures = self.known = 0
        self.bytes, self.documents, self.characters = Counter[str](), Counter[str](), Counter[str]()

    def take(self, items: Iterable[Item], kind: str, size: int) -> None:
        """Count the items of one file of `size` bytes, and draw from them."""
        self.bytes[kind] += size
        for item in items:
            document = usable_item(item, self._seen)
            if isinstance(document, Failure):
                self.failures += document.code not in NOTES
                continue
            length = len(document.text)
            self.documents[kind] += 1
            self.characters[kind] += length
            self.known += length if self._held and content_of(document) in self._held else 0
            slot = self.count if self.count < _DOCUMENTS else self._chance.randrange(self.count + 1)
            if slot < _DOCUMENTS:
                self.drawn[slot : slot + 1] = [(self.count, _shorten(document, self._room))]
            self.count += 1

    def of_all(self, counted: Counter[str], totals: Counter[str]) -> int:
        """Extrapolate a total from the files that were read to all files, by bytes."""
        found = 0.0
        for kind, size in totals.items():
            own = self.bytes[kind]
            number, among = (counted[kind], own) if own else (counted.total(), self.bytes.total())
            found += number * size / max(among, 1)
        return round(found)


def documents_within(
    numbered: list[tuple[int, Document]], room: int, chance: random.Random
) -> tuple[Document, ...]:
    """Return some documents, in order, with about `room` characters in total."""
    chance.shuffle(numbered)
    kept: list[tuple[int, Document]] = []
    for number, document in numbered:
        short = _shorten(document, room) if not kept else document
        if len(short.text) > room:
            break  # the order is random, so stopping at a long document keeps the sample fair
        kept.append((number, short))
        room -= len(short.text)
    return tuple(document for _, document in sorted(kept, key=lambda one: one[0]))


def _list_jobs(paths: Iterable[str], settings: Settings) -> tuple[list[ReadJob], int]:
    """Return the files to read, and the number of failures."""
    selection, jobs, failures = FileSelection(), list[ReadJob](), 0
    for path in paths:
        spec = absolute(path)
        files = find_files(spec, settings)
        jobs += read_jobs(spec, files, settings, selection)
        failures += len(files.failures) + len(selection.failures)
        selection.failures = []
    return jobs, failures


def _shuffled(jobs: list[ReadJob], chance: random.Random) -> list[ReadJob]:
    """Return files in a random order in which each format begins early and is spread evenly."""
    chance.shuffle(jobs)
    number, ranks = Counter(kind for _, kind in jobs), Counter[str]()
    keyed = []
    for job in jobs:
        keyed.append((ranks[job[1]] / number[job[1]], job))
        ranks[job[1]] += 1
    return [job for _, job in sorted(keyed, key=lambda one: one[0])]


def _shorten(document: Document, room: int) -> Document:
    """Return a document, cut to the maximum size of the whole sample."""
    if len(document.text) <= room:
        return document
    marks = tuple(replace(one, end=min(one.end, room)) for one in document.locators if one.start < room)
    return Document(document.id, document.text[:room], document.title, document.metadata, marks)
