"""The cost formula of the KET-RAG paper (section 5.3), compared with what a build really sends.

It is an estimate: it counts two prompts for each chunk (one for entities, one for relations) although one is
sent, every chunk as full as the largest, and one, two or three passes of the embedding model over everything.
`difference` splits the deviation from the measured tokens into these parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """Inputs of the formula: number of chunks, tokens of a chunk and of the prompt.

    `description_tokens` is the sum of embedded tokens over all entities and relations.
    """

    chunks: int
    chunk_tokens: int
    core_ratio: float
    prompt_tokens: int
    description_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Predicted:
    """Tokens by the formula."""

    tokens_in: float
    embedding_tokens: float

    def to_json(self) -> dict[str, Any]:
        """Return both numbers, rounded."""
        return {"tokens_in": round(self.tokens_in), "embedding_tokens": round(self.embedding_tokens)}


def kg_index(shape: Shape) -> Predicted:
    """Return ITC_KG: a skeleton over all chunks. Both prompts are assumed to be equally long."""
    sent = (2 + 2 * shape.prompt_tokens / shape.chunk_tokens) * shape.chunk_tokens * shape.chunks
    return Predicted(sent, shape.chunk_tokens * shape.chunks + shape.description_tokens)


def ket_index(shape: Shape) -> Predicted:
    """Return ITC_KET: the share `core_ratio` of ITC_KG, and three passes over chunks, sub-chunks and
    sentences.
    """
    whole = kg_index(shape)
    passes = 3 * shape.chunk_tokens * shape.chunks
    return Predicted(shape.core_ratio * whole.tokens_in, shape.core_ratio * whole.embedding_tokens + passes)


@dataclass(frozen=True, slots=True)
class Actual:
    """The same quantities as counted by a build. `calls` includes gleanings and repeats."""

    core_chunks: int
    core_tokens: int
    calls: int
    tokens_in: int


def difference(shape: Shape, actual: Actual) -> dict[str, float]:
    """Return formula minus measured input tokens, split by reason; the parts add up to the whole.

    `two_prompts`: one prompt is sent for each chunk, not two. `full_chunks`: chunks are shorter than their
    limit. `rounding`: core chunks are whole chunks. `repeats`: calls beyond one per chunk, with what they
    send again. `wording`: the rest, for the model's tokenizer and the framing of a chat.
    """
    predicted = ket_index(shape).tokens_in
    core = shape.core_ratio * shape.chunks
    one = core * (shape.chunk_tokens + shape.prompt_tokens)
    short = core * shape.chunk_tokens - _mean(actual) * core
    rounding = (core - actual.core_chunks) * (_mean(actual) + shape.prompt_tokens)
    first = actual.core_tokens + actual.core_chunks * shape.prompt_tokens
    more = actual.calls - actual.core_chunks
    repeats = -float(more) * (first / actual.core_chunks if actual.core_chunks else 0.0)
    parts = {
        "two_prompts": predicted - one,
        "full_chunks": short,
        "rounding": rounding,
        "repeats": repeats,
    }
    parts["wording"] = (predicted - actual.tokens_in) - math.fsum(parts.values())
    return parts


def _mean(actual: Actual) -> float:
    return actual.core_tokens / actual.core_chunks if actual.core_chunks else 0.0
