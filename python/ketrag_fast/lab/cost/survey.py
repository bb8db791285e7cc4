"""A first pass over the documents: their number, lengths, and a random sample."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.storage.document_hashes import content_of
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import NOTES


@dataclass(frozen=True, slots=True)
class Survey:
    """Result of the pass. `lengths` are the code points of each document; `sample` is in document order."""

    documents: int
    characters: int
    failures: int
    sample: tuple[Document, ...]
    lengths: NDArray[np.int64]
    known: int = 0
    known_characters: int = 0
    """Number of these documents that an index already holds unchanged."""

    @property
    def fresh(self) -> float:
        """The share of characters that is new."""
        return 1.0 - self.known_characters / self.characters if self.characters else 1.0

    @property
    def whole(self) -> bool:
        """Whether the sample contains all documents."""
        return sum(len(d.text) for d in self.sample) == self.characters

    @property
    def scale(self) -> float:
        """Characters of all documents per character of the sample."""
        own = sum(len(document.text) for document in self.sample)
        return self.characters / own if own else 1.0


def survey(
    items: Iterable[Document | Failure],
    most: int,
    characters: int,
    seed: int,
    held: Container[str] = frozenset(),
) -> Survey:
    """Read all documents and sample at most `most` of them with about `characters` characters.

    Every document has the same probability (reservoir sampling); the sample depends only on documents and
    seed. A document longer than the sample is cut. `held` are the contents that an index already has.
    """
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    kept: list[tuple[int, Document]] = []
    lengths: list[int] = []
    failures = known = known_characters = 0
    for item in items:
        if isinstance(item, Failure):
            if item.code in NOTES:
                continue
            failures += 1
            continue
        place = len(lengths)
        lengths.append(len(item.text))
        if held and content_of(item) in held:
            known += 1
            known_characters += len(item.text)
        if len(item.text) > characters:
            kept_marks = tuple(
                replace(one, end=min(one.end, characters)) for one in item.locators if one.start < characters
            )
            item = Document(item.id, item.text[:characters], item.title, item.metadata, kept_marks)
        if len(kept) < most:
            kept.append((place, item))
            continue
        slot = chance.randrange(place + 1)
        if slot < most:
            kept[slot] = place, item
    chance.shuffle(kept)
    sample: list[tuple[int, Document]] = []
    room = characters
    for entry in kept:
        if sample and len(entry[1].text) > room:
            break  # the order is random, so stopping at a long document keeps the sample fair
        sample.append(entry)
        room -= len(entry[1].text)
    chosen = tuple(document for _, document in sorted(sample, key=lambda entry: entry[0]))
    total = np.asarray(lengths, np.int64)
    return Survey(len(lengths), sum(lengths), failures, chosen, total, known, known_characters)
