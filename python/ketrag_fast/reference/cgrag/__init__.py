"""CG-RAG, plainly: edges between documents, and LeSeGR without training in both of its forms (specs 40)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.reference.vectors import F32, dot

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
    wanted: int = 255,
    residual: float = 0.0,
) -> list[float]:
    """The closed form: one number a text."""
    x = list(values)
    for _ in range(layers):
        message = [w * v for w, v in zip(weight, x, strict=True)]
        x = [
            (message[text] + sum(a * message[other] for other, a in carried)) / (len(carried) + 1)
            for text, carried in enumerate(_carried(edges, kinds, alpha, wanted))
        ]
    return [(1 - residual) * now + residual * before for now, before in zip(x, values, strict=True)]


def passed_vectors(
    edges: Rows,
    kinds: Rows,
    alpha: Sequence[Sequence[float]],
    weight: Sequence[float],
    vectors: Values,
    question: Values,
    *,
    layers: int,
    wanted: int = 255,
    residual: float = 0.0,
) -> list[float]:
    """The form of the paper: whole vectors are passed, and multiplied with the question's at the end."""
    h = np.array(vectors, np.float64)
    for _ in range(layers):
        h = np.array(
            [
                (
                    weight[text] * h[text]
                    + sum((a * weight[other] * h[other] for other, a in carried), np.zeros(h.shape[1]))
                )
                / (len(carried) + 1)
                for text, carried in enumerate(_carried(edges, kinds, alpha, wanted))
            ]
        ).reshape(h.shape)
    scores = (1 - residual) * (h @ question) + residual * (np.asarray(vectors, np.float64) @ question)
    return [float(score) for score in scores]


def _carried(
    edges: Rows, kinds: Rows, alpha: Sequence[Sequence[float]], wanted: int
) -> list[list[tuple[int, float]]]:
    """The edges into each text that carry messages: (sender, alpha)."""
    return [
        [(other, a) for other, kind, a in zip(row, kind_row, alpha_row, strict=True) if kind & wanted]
        for row, kind_row, alpha_row in zip(edges, kinds, alpha, strict=True)
    ]
