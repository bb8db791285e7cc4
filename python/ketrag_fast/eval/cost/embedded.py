"""Embedded text of an index, and the cost of vectors that an earlier build had computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ketrag_fast.systems.registry import registry

Stages = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of an embedding model on this machine, from the first complete build of the report."""

    tokens_per_byte: float
    seconds_per_token: float

    def tokens(self, size: int) -> int:
        """Return the tokens of that many bytes of text."""
        return round(self.tokens_per_byte * size)


def rate_of(tokens: int, seconds: float, size: int) -> Rate:
    """Return the rate measured in one build."""
    return Rate(tokens / max(size, 1), seconds / max(tokens, 1))


def embedded_bytes(stages: Stages, made: Collection[str]) -> int:
    """Return the bytes of all texts that the stages `made` embed: units and chunks with their titles,
    sentences, titles, and what stages of systems declare.
    """
    units = stages.get("units")
    if units is None:
        return 0
    titles = np.diff(units["document_titles_offsets"].astype(np.int64))
    total = 0
    if "vectors" in made:
        total += int(units["unit_texts_offsets"][-1]) + int(titles[units["unit_document"]].sum())
    if "sentence_vectors" in made:
        own = units["sent_bytes"][units["sent_title"] == 0].astype(np.int64)
        total += int((own[:, 1] - own[:, 0]).sum())
    if "title_vectors" in made:
        total += int(titles.sum())
    if "chunk_vectors" in made and len(units["chunk_document"]) != len(units["unit_chunk"]):
        spans = units["chunk_bytes"].astype(np.int64)
        total += int((spans[:, 1] - spans[:, 0]).sum()) + int(titles[units["chunk_document"]].sum())
    for stage in registry().stages:
        if stage.name in made:
            total += sum(_size(stages, of, texts) for of, texts in stage.embeds)
    return total


def _size(stages: Stages, stage: str, texts: str) -> int:
    return len(stages.get(stage, {}).get(f"{texts}_blob", ()))
