"""Histories of small indexes: random documents and changes, and the comparison with a fresh build."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import InputError
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout

SETTINGS = Settings(modes="bm25,walk", language="english", threads=2, chunk_tokens=40)
NAMES = (
    "Fram",
    "Gjøa",
    "Roald Amundsen",
    "The Pole",
    "Ross Ice Shelf",
    "Hut Point",
    "Maud",
    "1911",
    "Oslo",
    "X",
)
WORDS = (
    "sledge",
    "dogs",
    "winter",
    "ice",
    "it",
    "was",
    "of",
    "the",
    "seal",
    "oil",
    "years",
    "Ice",
    "The",
    "w1",
    "SledgeDogs",
    "seal_oil",
)
QUESTIONS = (
    "Who sailed the Fram?",
    "Which dogs and sledges reached the Pole in 1911?",
    "Ross Ice Shelf seal oil",
)


def text(dice: random.Random) -> str:
    """Some sentences in which names repeat, with and without words around them."""
    sentences = []
    for _ in range(dice.randint(1, 9)):
        words = [dice.choice(NAMES if dice.random() < 0.3 else WORDS) for _ in range(dice.randint(2, 12))]
        sentences.append(" ".join(words) + dice.choice((".", "!", ".\n")))
    return " ".join(sentences)


def document(dice: random.Random, name: str, dated: bool) -> Document:
    """A document whose title others may mention; `dated` ones have metadata at times."""
    title = dice.choice(("", dice.choice(NAMES), f"{dice.choice(NAMES)} ({dice.choice(WORDS)})"))
    metadata = {"year": dice.randint(1890, 1920)} if dated and dice.random() < 0.6 else {}
    return Document(name, text(dice), title, metadata)


def arrays_of(path: Path) -> dict[str, Any]:
    """All arrays of the current generation by stage and name."""
    stages = open_current(Layout(path)).stages
    return {f"{stage}.{name}": arrays[name] for stage, arrays in stages.items() for name in arrays}


def answers(index: Index, dated: bool, modes: Sequence[str] = ("bm25", "walk")) -> list[Any]:
    """Return the answers of some modes, with explanations and filters, without timings."""
    found = []
    for mode in modes:
        for question in QUESTIONS:
            for more in ({}, {"filter": "year>=1900"}) if dated else ({},):
                try:
                    context = index.retrieve(question, mode=mode, explain=mode == "walk", **more)
                except InputError as error:  # in some histories no document has a year
                    found.append(str(error))
                    continue
                data = context.to_json()
                found.append({key: data[key] for key in data if key not in ("timings_ms", "generation")})
    return found


def is_delta(path: Path) -> bool:
    """Return whether the current generation has a delta."""
    return open_current(Layout(path)).delta is not None


def compare(path: Path, documents: Sequence[Document], fresh: Path, settings: Settings = SETTINGS) -> None:
    """Fails unless the index has the arrays of a build of these documents, which is left in `fresh`."""
    Index.build(documents, fresh, settings=settings).close()
    found, wanted = arrays_of(path), arrays_of(fresh)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
        assert found[name].dtype == array.dtype


@dataclass
class History:
    """Documents that change at random; `deltas` counts the changes that were stored as a delta."""

    dice: random.Random
    path: Path
    dated: bool
    documents: list[Document] = field(default_factory=list)
    deltas: int = 0
    settings: Settings = SETTINGS

    def start(self) -> Index:
        """Build the index, and open it."""
        count = self.dice.randint(8, 25)
        self.documents = [document(self.dice, f"d{n:02}", self.dated) for n in range(count)]
        if self.dated:  # the first with metadata stays
            self.documents[0] = Document("d00", "Maud in 1911.", "", {"year": 1911})
        return Index.build(self.documents, self.path, settings=self.settings)

    def changes(self, index: Index, steps: int) -> Iterator[int]:
        """Make a number of random changes; yield the number of each when it is published."""
        for step in range(steps):
            add, remove = [], []
            some = min(len(self.documents) - 1, self.dice.randint(0, 3))
            for one in self.dice.sample(self.documents, some):
                if self.dice.random() < 0.4:
                    remove.append(one.id)
                else:
                    add.append(document(self.dice, one.id, self.dated))
            add += [document(self.dice, f"n{step}-{n}", self.dated) for n in range(self.dice.randint(0, 2))]
            changed = {one.id: one for one in add}
            self.documents = [changed.pop(one.id, one) for one in self.documents if one.id not in remove]
            self.documents += changed.values()
            report = index.update(add=add, remove=remove)
            self.deltas += any(stage.name == "delta" for stage in report.stages)
            yield step

    def check(self, index: Index, fresh: Path) -> None:
        """Fails unless the index is that of a build of its documents in `fresh`, and answers like it."""
        compare(self.path, self.documents, fresh, self.settings)
        about = [open_current(Layout(one)).manifest.documents for one in (self.path, fresh)]
        assert about[0] == about[1]
        with Index.open(fresh, settings=self.settings) as other:
            modes = self.settings.modes.split(",")
            assert answers(index, self.dated, modes) == answers(other, self.dated, modes)
            assert index.stats()["content_digest"] == other.stats()["content_digest"]
