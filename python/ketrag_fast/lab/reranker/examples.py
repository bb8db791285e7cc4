"""Training examples: the walk's candidates of judged questions as arrays, and the quality of an order."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.query.walk_features import DEPTH, FEATURES, WalkCandidates
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.io_errors import writing

MEASURES: Final = ("recall@5", "all gold in 5", "all gold in 10", "first")
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Candidates of n questions in the walk's order, padded to DEPTH.

    `features` is float32[n, DEPTH, FEATURES], `scores` f64[n, DEPTH], `documents` i32[n, DEPTH] with the
    number of each candidate's document (-1: no candidate), `gold` bool[n, DEPTH], `wanted` the number of
    gold documents of each question, and `is_probe` whether the question is a sentence cut out of its passage.
    """

    features: NDArray[np.float32]
    scores: F64
    documents: NDArray[np.int32]
    gold: NDArray[np.bool_]
    wanted: NDArray[np.int64]
    is_probe: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.wanted)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Examples:
        """Return the examples of some questions."""
        return Examples(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each question has a gold candidate and another one: only these teach an order."""
        others = (self.documents >= 0) & ~self.gold
        return np.asarray(self.gold.any(axis=1) & others.any(axis=1))

    def measure(self, added: F64 | None = None) -> F64:
        """Return MEASURES of each question, with something added to the scores of its candidates: f64[n, 4].

        Documents count once, at the rank of their first unit.
        """
        scores = self.scores if added is None else self.scores + added
        ranked = np.argsort(-np.where(self.documents < 0, -np.inf, scores), axis=1, kind="stable")
        found = np.zeros((len(self), len(MEASURES)))
        for row, order in enumerate(ranked):
            firsts = dict.fromkeys(int(self.documents[row, at]) for at in order)
            firsts.pop(-1, None)
            golds = set(self.documents[row, self.gold[row]].tolist())
            hits = [document in golds for document in firsts][:10]
            five, ten = sum(hits[:5]), sum(hits)
            want = int(self.wanted[row])
            found[row] = five / want, five == want, ten == want, bool(hits and hits[0])
        return found

    def save(self, path: Path) -> None:
        """Write the arrays to a file, atomically."""
        fresh = path.with_name(f"{path.name}.new")
        with writing(path.parent):
            with fresh.open("wb") as file:
                np.savez(file, **{one.name: getattr(self, one.name) for one in fields(self)})
            replace_path(fresh, path)

    @classmethod
    def load(cls, path: Path) -> Examples | None:
        """Return the examples of a file; None if there is none, or it is damaged."""
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls(**{one.name: file[one.name] for one in fields(cls)})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


def make_examples(
    found: Sequence[tuple[list[str], WalkCandidates]], gold: Sequence[Collection[str]], *, is_probe: bool
) -> Examples:
    """Return the examples of questions with the documents of their candidates and their gold documents."""
    n = len(found)
    features = np.zeros((n, DEPTH, len(FEATURES)), np.float32)
    scores, documents = np.zeros((n, DEPTH)), np.full((n, DEPTH), -1, np.int32)
    judged = np.zeros((n, DEPTH), np.bool_)
    for row, ((names, candidates), own) in enumerate(zip(found, gold, strict=True)):
        count = len(names)
        features[row, :count], scores[row, :count] = candidates.features, candidates.scores
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        documents[row, :count] = [numbers[name] for name in names]
        judged[row, :count] = [name in own for name in names]
    wanted = np.array([len(own) for own in gold], np.int64)
    return Examples(features, scores, documents, judged, wanted, np.full(n, is_probe))


def join(parts: Sequence[Examples]) -> Examples:
    """Return the examples of several sets as one."""
    return Examples(
        **{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Examples)}
    )
