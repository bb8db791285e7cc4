"""A first look at the documents: how many, how long, and a sample of them drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.storage.tables import content_of
from ketrag_fast.types import Document, Failure


@dataclass(frozen=True, slots=True)
class Survey:
    """`lengths` are the code points of each document; `sample` is in the order of the documents."""

    documents: int
    characters: int
    failures: int
    sample: tuple[Document, ...]
    lengths: NDArray[np.int64]
    known: int = 0
    known_characters: int = 0
    """Of these documents, those that an index holds already as they are."""

    @property
    def fresh(self) -> float:
        """The share of the characters that is new."""
        return 1.0 - self.known_characters / self.characters if self.characters else 1.0

    @property
    def whole(self) -> bool:
        """Whether the sample is all there is."""
        return sum(len(d.text) for d in self.sample) == self.characters

    @property
    def scale(self) -> float:
        """Characters of all documents for each of the sample."""
        own = sum(len(document.text) for document in self.sample)
        return self.characters / own if own else 1.0


def survey(
    items: Iterable[Document | Failure],
    most: int,
    characters: int,
    seed: int,
    held: Container[str] = frozenset(),
) -> Survey:
    """Reads all, keeps at most `most` documents and about `characters` characters of them.

    Every document has the same chance (reservoir sampling); equal for equal documents and seed. A document
    that alone is longer than the sample may be is cut. `held` are the contents that an index has already.
    """
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    kept: list[tuple[int, Document]] = []
    lengths: list[int] = []
    failures = known = known_characters = 0
    for item in items:
        if isinstance(item, Failure):
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
            break  # what follows in this order is as good a sample as any, so a long one ends it
        sample.append(entry)
        room -= len(entry[1].text)
    chosen = tuple(document for _, document in sorted(sample, key=lambda entry: entry[0]))
    total = np.asarray(lengths, np.int64)
    return Survey(len(lengths), sum(lengths), failures, chosen, total, known, known_characters)
