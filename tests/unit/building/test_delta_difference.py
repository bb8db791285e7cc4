"""The differences of lists of documents: the short comparison equals that of all documents by NumPy."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast.building import delta_difference
from ketrag_fast.building.delta_difference import difference


class Units:
    """The published hashes, as an array and as a column."""

    def __init__(self, published: list[bytes]) -> None:
        data = b"".join(one[:16] for one in published)
        self._hashes = np.frombuffer(data, np.uint8).reshape(-1, 16)
        self.columns = {"document_hashes": memoryview(self._hashes if published else b"")}

    def __getitem__(self, name: str) -> NDArray[np.uint8]:
        assert name == "document_hashes"
        return self._hashes


class Rows:
    """Lists of 32-byte hashes as stored documents, and of 16-byte hashes as published ones."""

    def __init__(self, published: list[bytes], now: list[bytes]) -> None:
        self.now = now
        self.stages = {"units": Units(published)}

    def content_bytes(self) -> bytes:
        return b"".join(self.now)

    def contents(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.content_bytes(), np.uint8).reshape(-1, 32)

    def ids_at(self, numbers: Iterable[int]) -> list[str]:
        return [f"d{number}" for number in numbers]


def edited(dice: random.Random, documents: list[bytes]) -> list[bytes]:
    """Return the documents after some were removed, changed, added or, rarely, moved."""
    found = list(documents)
    for _ in range(dice.randrange(6)):
        at = dice.randrange(len(found) + 1)
        match dice.randrange(8):
            case 0 | 1 if at < len(found):
                del found[at]
            case 2 | 3 if at < len(found):
                found[at] = dice.randbytes(32)
            case 4 if len(found) > 1 and at < len(found):
                found.insert(dice.randrange(len(found)), found.pop(at))
            case _:
                found.insert(at, dice.randbytes(32))
    return found


@pytest.mark.parametrize("seed", range(300))
def test_the_short_comparison_equals_that_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    published = [dice.randbytes(32) for _ in range(dice.choice([0, 1, 2, 5, 40]))]
    rows: Any = Rows(published, edited(dice, published))
    most = dice.choice([2, 100])
    short = difference(rows, rows, most)
    monkeypatch.setattr(delta_difference, "_MIDDLE", -1)
    assert short == difference(rows, rows, most)
