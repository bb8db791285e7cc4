"""Documents and parts of indexes to merge."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from ketrag_fast import Document, Index, Settings

NAMES = ("Amundsen", "Shackleton", "Nansen", "Frank Wild", "Tom Crean", "Oslo", "Fram", "Endurance")


WORDS = (
    "river",
    "stone",
    "market",
    "winter",
    "bridge",
    "library",
    "painter",
    "harbour",
    "ship",
    "w1",
    "w7",
    "w22",
)


def document(name: str, more: str = "") -> Document:
    """Some sentences that share names with others'."""
    dice = random.Random(name + more)
    said = [
        f"{dice.choice(NAMES)} met {dice.choice(NAMES)} by the {' '.join(dice.choices(WORDS, k=5))}."
        for _ in range(dice.randint(2, 6))
    ]
    return Document(name, " ".join(said), name.upper(), {"year": dice.randrange(1900, 1950)})


def build(place: Path, sources: object, settings: Settings | None = None) -> str:
    with Index.build(sources, place, settings=settings) as index:  # type: ignore[arg-type]
        return index.digest


def split(documents: Sequence[Document], count: int, dice: random.Random) -> list[list[Document]]:
    """Into so many parts, none of them empty, in an order of their own."""
    parts: list[list[Document]] = [[] for _ in range(count)]
    for number, one in enumerate(dice.sample(documents, k=len(documents))):
        (parts[number] if number < count else dice.choice(parts)).append(one)
    return parts
