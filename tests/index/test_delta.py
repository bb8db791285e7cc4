"""A change of a large index is published as a delta; every answer is that of a build from scratch."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.build import delta
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
)
QUESTIONS = (
    "Who sailed the Fram?",
    "Which dogs and sledges reached the Pole in 1911?",
    "Ross Ice Shelf seal oil",
)


def text(dice: random.Random) -> str:
    sentences = []
    for _ in range(dice.randint(1, 9)):
        words = [dice.choice(NAMES if dice.random() < 0.3 else WORDS) for _ in range(dice.randint(2, 12))]
        sentences.append(" ".join(words) + dice.choice((".", "!", ".\n")))
    return " ".join(sentences)


def document(dice: random.Random, name: str, dated: bool) -> Document:
    title = dice.choice(("", dice.choice(NAMES), f"{dice.choice(NAMES)} ({dice.choice(WORDS)})"))
    metadata = {"year": dice.randint(1890, 1920)} if dated and dice.random() < 0.6 else {}
    return Document(name, text(dice), title, metadata)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let indexes of any size be changed by deltas."""
    monkeypatch.setattr(delta, "LEAST", 0)


def arrays_of(path: Path) -> dict[str, Any]:
    stages = open_current(Layout(path)).stages
    return {f"{stage}.{name}": arrays[name] for stage, arrays in stages.items() for name in arrays}


def answers(index: Index, dated: bool) -> list[Any]:
    found = []
    for mode in ("bm25", "walk"):
        for question in QUESTIONS:
            for more in ({}, {"filter": "year>=1900"}) if dated else ({},):
                context = index.retrieve(question, mode=mode, explain=mode == "walk", **more)
                data = context.to_json()
                found.append({key: data[key] for key in data if key not in ("timings_ms", "generation")})
    return found


def is_delta(path: Path) -> bool:
    return open_current(Layout(path)).delta is not None


def compare(path: Path, documents: Sequence[Document], fresh: Path) -> None:
    Index.build(documents, fresh, settings=SETTINGS).close()
    found, wanted = arrays_of(path), arrays_of(fresh)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize("seed", range(8))
def test_every_step_of_a_history_is_a_build(seed: int, tmp_path: Path, always: None) -> None:
    dice, path = random.Random(seed), tmp_path / "index"
    dated = seed % 2 == 1
    documents = [document(dice, f"d{n:02}", dated) for n in range(dice.randint(8, 25))]
    if dated:
        documents[0] = Document("d00", "Maud in 1911.", "", {"year": 1911})
    deltas = 0
    with Index.build(documents, path, settings=SETTINGS) as index:
        for step in range(8):
            add, remove = [], []
            for one in dice.sample(documents, min(len(documents) - 1, dice.randint(0, 3))):
                remove.append(one.id) if dice.random() < 0.4 else add.append(document(dice, one.id, dated))
            add += [document(dice, f"n{step}-{n}", dated) for n in range(dice.randint(0, 2))]
            changed = {one.id: one for one in add}
            documents = [changed.pop(one.id, one) for one in documents if one.id not in remove]
            documents += changed.values()
            report = index.update(add=add, remove=remove)
            deltas += any(stage.name == "delta" for stage in report.stages)
            fresh = tmp_path / f"fresh{step}"
            compare(path, documents, fresh)
            about = [open_current(Layout(one)).manifest.documents for one in (path, fresh)]
            assert about[0] == about[1]
            with Index.open(fresh) as other:
                assert answers(index, dated) == answers(other, dated)
            shutil.rmtree(fresh)
    assert deltas >= 6
