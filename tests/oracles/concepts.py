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
    idf: str = "smooth",
    min_df: int = 1,
    max_df_ratio: float = 1.0,
    min_chars: int = 2,
) -> tuple[list[str], list[list[str]]]:
    """The concepts, and those that each chunk named; a chunk is a count of each of its words."""
    n = len(chunks)
    df: dict[str, int] = {}
    for chunk in chunks:
        for word in chunk:
            df[word] = df.get(word, 0) + 1
    weight = {
        word: math.log((n + 1) / (count + 1)) + 1 if idf == "smooth" else math.log(n / count)
        for word, count in df.items()
        if count >= min_df and count <= math.floor(max_df_ratio * n + 1e-9) and len(word) >= min_chars
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


def quantile(chunk_concepts: Rows, vectors: F32, theta_co: int, part: float) -> float:
    """The cosine that `part` of the pairs that meet often enough do not exceed; 1 where there are none."""
    found = sorted(cosine for _, cosine, _ in concept_graph(chunk_concepts, vectors, theta_co, -1).values())
    if not found:
        return 1 - 1e-6
    at = math.floor(part * (len(found) - 1) + 0.5)
    return min(found[at], 1 - 1e-6)


def choose_chunks(chunk_concepts: Rows, ranks: Sequence[float], score: str, count: int) -> list[int]:
    """The chunks with the most of what is important, best first."""

    def level(rank: float) -> int:
        return math.floor(rank * 1e12 + 0.5)

    def key(chunk: int) -> tuple[list[float], int]:
        row = [ranks[concept] for concept in chunk_concepts[chunk]]
        if score == "max":  # an end that comes after everything: of two that begin alike the longer is first
            return [*(-level(rank) for rank in sorted(row, reverse=True)), math.inf], chunk
        total = 0.0
        for rank in row:
            total += rank
        return [-level(total / max(len(row), 1) if score == "mean" else total)], chunk

    return sorted(range(len(chunk_concepts)), key=key)[:count]
