"""CG-RAG, plainly: edges between documents, and LeSeGR without training in both of its forms (specs 40)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.oracles.vectors import F32, dot

Rows = Sequence[Sequence[int]]
Values = NDArray[np.float64]


def links(
    first: Sequence[int],
    vectors: F32,
    words: Sequence[Mapping[int, float]],
    senders: Rows,
    most: int,
) -> tuple[list[list[int]], list[list[float]]]:
    """For each text those that send to it, ids ascending, and how relevant each is (step 4 of 4.2)."""
    rows: list[list[int]] = []
    relevance: list[list[float]] = []
    for document, heard in enumerate(senders):
        for text in range(first[document], first[document + 1]):
            chosen: dict[int, float] = {}
            for sender in heard:
                if sender == document:
                    continue
                scores = {
                    other: dot(vectors[text], vectors[other])
                    + sum(
                        words[text][w] * words[other][w]
                        for w in sorted(words[text].keys() & words[other].keys())
                    )
                    for other in range(first[sender], first[sender + 1])
                }
                best = sorted(scores, key=lambda other: (-scores[other], other))[:most]
                chosen |= {other: scores[other] for other in best}
            rows.append(sorted(chosen))
            relevance.append([chosen[other] for other in sorted(chosen)])
    return rows, relevance


def alphas(edges: Rows, vectors: F32) -> list[list[float]]:
    """The cosine of the ends of each edge, from 0 to 1 (4.4.1)."""
    return [
        [min(1.0, max(0.0, dot(vectors[text], vectors[other]))) for other in row]
        for text, row in enumerate(edges)
    ]


def weights(matches: Sequence[float], epsilon: float) -> list[float]:
    """What the message of each text is multiplied by: from its product of words with the question."""
    most = max(matches, default=0.0)
    if most <= 0.0:
        return [1.0] * len(matches)
    return [epsilon + (1 - epsilon) * match / most for match in matches]


def messages(
    edges: Rows,
    kinds: Rows,
    alpha: Sequence[Sequence[float]],
    weight: Sequence[float],
    values: Sequence[float],
    *,
    layers: int,
    share: float,
    wanted: int = 255,
) -> list[float]:
    """The closed form: one number a text. It is the passing of vectors of one dimension."""
    one = np.asarray(values, np.float64).reshape(-1, 1)
    return passed_vectors(
        edges, kinds, alpha, weight, one, np.ones(1), layers=layers, share=share, wanted=wanted
    )


def passed_vectors(
    edges: Rows,
    kinds: Rows,
    alpha: Sequence[Sequence[float]],
    weight: Sequence[float],
    vectors: Values,
    question: Values,
    *,
    layers: int,
    share: float,
    wanted: int = 255,
) -> list[float]:
    """The form of the paper: whole vectors are passed, and multiplied with the question's at the end.

    A text adds a share of the mean of the others' messages to its own.
    """
    own = np.array(vectors, np.float64) * np.asarray(weight, np.float64).reshape(-1, 1)
    carried = _carried(edges, kinds, alpha, wanted)
    h = own
    for _ in range(layers):
        h = np.array([_taken(own, h, text, row, share) for text, row in enumerate(carried)]).reshape(
            own.shape
        )
    return [float(score) for score in h @ question]


def _taken(own: Values, message: Values, text: int, row: list[tuple[int, float]], share: float) -> Values:
    others = sum((a * message[other] for other, a in row), np.zeros(own.shape[1]))
    return np.asarray(own[text] + share * others / max(len(row), 1))


def _carried(
    edges: Rows, kinds: Rows, alpha: Sequence[Sequence[float]], wanted: int
) -> list[list[tuple[int, float]]]:
    """The edges into each text that carry messages: (sender, alpha)."""
    return [
        [(other, a) for other, kind, a in zip(row, kind_row, alpha_row, strict=True) if kind & wanted]
        for row, kind_row, alpha_row in zip(edges, kinds, alpha, strict=True)
    ]
