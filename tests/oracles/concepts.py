"""Concepts, plainly: extraction, graph, the choice of chunks, and local search (specs 20, 2.2 to 2.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.oracles.vectors import F32, dot

Rows = Sequence[Sequence[int]]


def concepts(
    chunks: Sequence[Mapping[str, int]],
    *,
    most: int = 50,
) -> tuple[list[str], list[list[str]]]:
    """The concepts, and those that each chunk named; a chunk is a count of each of its words."""
    n = len(chunks)
    df: dict[str, int] = {}
    for chunk in chunks:
        for word in chunk:
            df[word] = df.get(word, 0) + 1
    weight = {
        word: math.log((n + 1) / (count + 1)) + 1
        for word, count in df.items()
        if len(word) >= 2 or word == "中"
    }
    named = []
    for chunk in chunks:
        scores = {word: count * weight[word] for word, count in chunk.items() if weight.get(word, 0.0) > 0}
        best = sorted(scores, key=lambda word: (-scores[word], word.encode()))[:most]
        named.append(sorted(best, key=str.encode))
    return sorted({word for row in named for word in row}, key=str.encode), named


def concept_graph(
    chunk_concepts: Rows, vectors: F32, theta_co: int, theta_sem: float
) -> dict[tuple[int, int], tuple[int, float, float]]:
    """For each edge (smaller id first): chunks shared, cosine, Dice's coefficient."""
    chunks_of: list[set[int]] = [set() for _ in range(len(vectors))]
    for chunk, row in enumerate(chunk_concepts):
        for concept in row:
            chunks_of[concept].add(chunk)
    edges = {}
    for one in range(len(vectors)):
        for other in range(one + 1, len(vectors)):
            shared = len(chunks_of[one] & chunks_of[other])
            cosine = dot(vectors[one], vectors[other])
            if shared >= max(theta_co, 1) and (cosine >= min(theta_sem, 1 - 1e-6) or theta_sem <= -1):
                size = len(chunks_of[one]) + len(chunks_of[other])
                edges[one, other] = shared, cosine, 2 * shared / size
    return edges


def choose_chunks(chunk_concepts: Rows, ranks: Sequence[float], count: int) -> list[int]:
    """The chunks whose concepts have the largest sum of ranks, best first."""

    def key(chunk: int) -> tuple[int, int]:
        total = 0.0
        for concept in chunk_concepts[chunk]:
            total += ranks[concept]
        return -math.floor(total * 1e12 + 0.5), chunk

    return sorted(range(len(chunk_concepts)), key=key)[:count]
