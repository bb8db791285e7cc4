"""What a precision costs on a user's own texts: the same model in fp32 beside it, neighbour by neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import InputError
from ketrag_fast.models.embedders.fingerprint import closeness
from ketrag_fast.models.embedders.protocol import Embedder, Vectors
from ketrag_fast.readers import SourceFile, find, items_of, known_kind
from ketrag_fast.types import Document

MOST: Final = 1000
"""Texts that are compared; of more these many at even distances."""
LENGTH: Final = 600
"""Characters of a text: about a passage, cut at line ends where there are some."""
NEAREST: Final = 10


@dataclass(frozen=True, slots=True)
class PrecisionLoss:
    """`lowest` and `mean` cosine to fp32, and the share of each text's ten nearest that stay the same."""

    texts: int
    precision: str
    lowest: float
    mean: float
    same_nearest: float

    def to_json(self) -> dict[str, Any]:
        """For `ketrag models check --json`."""
        return asdict(self)


def cost(embedder: Embedder, exact: Embedder, texts: Sequence[str]) -> PrecisionLoss:
    """Compares the vectors of `embedder` with those of `exact`, the same model in fp32.

    Raises InputError where there are fewer than two texts.
    """
    if len(texts) < 2:
        raise InputError("to compare neighbours there must be two texts at least", hint="give more texts")
    got, want = embedder.embed(texts), exact.embed(texts)
    cosines = (got.astype(np.float64) * want.astype(np.float64)).sum(1)
    ours, theirs = _nearest(got), _nearest(want)
    same = [len(set(a) & set(b)) / len(a) for a, b in zip(ours, theirs, strict=True)]
    return PrecisionLoss(
        len(texts),
        embedder.engine.precision,
        round(closeness(got, want), 6),
        round(float(cosines.mean()), 6),
        round(float(np.mean(same)), 4),
    )


def _nearest(vectors: Vectors) -> list[list[int]]:
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    count = min(NEAREST, len(vectors) - 1)
    nearest: list[list[int]] = np.argpartition(-scores, count - 1, axis=1)[:, :count].tolist()
    return nearest


def texts_of(source: str) -> list[str]:
    """Passages of a file, folder or pattern, at most `MOST`, at even distances. Raises InputError."""
    found = find(source)
    if found.missing:
        raise InputError(f"{source}: there is no such file or folder")
    passages: list[str] = []
    for name, path in found.files:
        file = SourceFile(path, name)
        kind = known_kind(file)
        for item in items_of(file, kind) if kind is not None else ():
            if isinstance(item, Document):
                passages.extend(_passages(item.text))
    kept = [passages[i * len(passages) // MOST] for i in range(MOST)] if len(passages) > MOST else passages
    if len(kept) < 2:
        raise InputError(f"{source}: no texts to compare", hint="give files that `ketrag index` reads")
    return kept


def _passages(text: str) -> list[str]:
    out: list[str] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if out and len(out[-1]) + len(line) < LENGTH:
            out[-1] += "\n" + line
        else:
            out.extend(line[i : i + LENGTH] for i in range(0, len(line), LENGTH))
    return out
