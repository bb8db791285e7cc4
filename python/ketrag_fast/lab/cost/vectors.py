"""Cost of an embedding model: tokens per byte of text, and seconds, from a small sample."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback
from ketrag_fast.lab.cost.measure import measure
from ketrag_fast.systems.planning import embedding_stages
from ketrag_fast.types import Document

_CHARACTERS: Final = 150_000
"""Characters of the sample; a model embeds some thousand tokens per second on a small machine."""
_CODE_BYTES: Final = 1
_VECTOR_BYTES: Final = 4
_EXTRA_BYTES: Final = 8
"""Bytes per vector in addition to its codes: scale and residual."""
_KEPT_BYTES: Final = 60
"""Bytes per cached vector in addition to its numbers."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a model. `fixed` is the time to load it."""

    dimension: int
    tokens_per_byte: float
    seconds_per_token: float
    fixed: float
    memory: int | None
    """Peak memory of the process with the model loaded."""

    def seconds(self, tokens: float) -> float:
        """Return the seconds for that many tokens."""
        return self.fixed + self.seconds_per_token * tokens


def pace(documents: Sequence[Document], settings: Settings, progress: Callback | None) -> Pace:
    """Build a small sample with the model at two sizes, which separates loading from embedding."""
    chosen: list[Document] = []
    room = _CHARACTERS
    for document in documents:
        if chosen and len(document.text) > room:
            break
        chosen.append(document)
        room -= len(document.text)
    samples = measure(chosen, settings, progress)
    first, last = samples[0], samples[-1]
    embedding = embedding_stages()
    took = [sum(s for name, s in sample.seconds.items() if name in embedding) for sample in (first, last)]
    more = last.embedding_tokens - first.embedding_tokens
    each = (took[1] - took[0]) / more if more > 0 else 0.0
    even = took[1] / max(last.embedding_tokens, 1)
    if not 0.3 * even <= each <= even:  # noise of a busy machine; a single rate is safer
        each = even
    tokens = last.embedding_tokens / max(last.embedded_bytes, 1)
    fixed = max(took[1] - each * last.embedding_tokens, 0.0)
    return Pace(last.dimension, tokens, each, fixed, last.memory)


def stored_bytes(counts: Mapping[str, float], made: Collection[str], dimension: int) -> dict[str, int]:
    """Return the bytes of the stages `made` that hold vectors of a model, and of the cache.

    Units and keywords also have a one-byte copy; sentences, titles and chunks have vectors alone.
    """
    searched = dimension * (_VECTOR_BYTES + _CODE_BYTES) + _EXTRA_BYTES
    plain = dimension * _VECTOR_BYTES
    rows = {
        "vectors": (counts["subchunks"], searched),
        "chunk_vectors": (counts["chunks"], plain),
        "sentence_vectors": (counts["sentences"] + counts["documents"], plain),
        "keywords": (counts["keywords"], searched),
    }
    found = {name: round(count * each) for name, (count, each) in rows.items() if name in made}
    texts = sum(count for name, (count, _) in rows.items() if name in made and name != "keywords")
    return {**found, "cache": round(texts * (plain + _KEPT_BYTES))}
