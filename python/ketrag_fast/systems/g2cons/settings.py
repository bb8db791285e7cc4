"""Settings of G2ConS: concepts, their links, and retrieval by them."""

from __future__ import annotations

from dataclasses import dataclass

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class G2ConsSettings:
    """Defaults of the paper."""

    concepts_per_chunk: int = setting(
        50, "words of a chunk that become concepts, by TF-IDF", low=1, high=1_000_000
    )
    theta_co: int = setting(
        3, "minimum number of chunks that two linked concepts share", low=0, high=2**32 - 1
    )
    theta_sem: float = setting(
        0.65, "minimum cosine of two linked concepts; -1 links all that co-occur", low=-1.0, high=1.0
    )
