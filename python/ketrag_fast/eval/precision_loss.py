"""Measure what a precision costs on the user's texts, compared with the same model in fp32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import DocumentError, InputError
from ketrag_fast.index.building import read_sources
from ketrag_fast.models.embedders.fingerprint import closeness
from ketrag_fast.models.embedders.protocol import Embedder, Vectors
from ketrag_fast.types import Document

MOST: Final = 1000
"""Maximum number of texts compared, sampled evenly."""
LENGTH: Final = 600
"""Maximum length of a text in characters, about a passage; split at line ends if possible."""
NEAREST: Final = 10


@dataclass(frozen=True, slots=True)
class PrecisionLoss:
    """`lowest` and `mean` cosine to fp32, and the mean share of the ten nearest texts that stay."""

    texts: int
    precision: str
    lowest: float
    mean: float
    same_nearest: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `ketrag models check --json`."""
        return asdict(self)


def cost(embedder: Embedder, exact: Embedder, texts: Sequence[str]) -> PrecisionLoss:
    """Compare the vectors of `embedder` with those of `exact`, the same model in fp32.

    Raises InputError if there are fewer than two texts.
    """
    if len(texts) < 2:
        raise InputError(f"need at least two texts to compare, got {len(texts)}", hint="give more texts")
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
    """Return up to `MOST` evenly sampled passages of a file, folder or pattern. Raises InputError."""
    passages: list[str] = []
    try:
        for item in read_sources(source, Settings()):
            if isinstance(item, Document):
                passages.extend(_passages(item.text))
    except DocumentError as error:
        raise InputError(str(error), hint=error.hint) from None
    kept = [passages[i * len(passages) // MOST] for i in range(MOST)] if len(passages) > MOST else passages
    if len(kept) < 2:
        raise InputError(
            f"{source}: fewer than two texts to compare", hint="give files that `ketrag index` reads"
        )
    return kept


def _passages(text: str) -> list[str]:
    out: list[str] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if out and len(out[-1]) + len(line) < LENGTH:
            out[-1] += "\n" + line
        else:
            out.extend(line[i : i + LENGTH] for i in range(0, len(line), LENGTH))
    return out
