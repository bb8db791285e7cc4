"""The variants of G2ConS: `g2cons`, which scores best, and `g2cons:reference`, the paper (no code exists)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal


@dataclass(frozen=True, kw_only=True)
class G2ConsRules:
    """What the variants decide differently.

    Attributes:
        seed_concepts: number of concepts nearest to the query that a search starts from.
        concept_rerank: order of the units of these concepts: in turns, or concept by concept.
        g2cons_rollover: whether the texts get the budget that the tables leave.
    """

    seed_concepts: int
    concept_rerank: Literal["turns", "local"]
    g2cons_rollover: Literal["texts", "none"]


DEFAULT: Final = G2ConsRules(seed_concepts=60, concept_rerank="turns", g2cons_rollover="texts")
REFERENCE: Final = G2ConsRules(seed_concepts=25, concept_rerank="local", g2cons_rollover="none")

_SETTINGS: Mapping[str, Any] = {
    "cut": "windows",
    "chunk_tokens": 1200,
    "overlap": 0,
    "split_level": 0,
    "core_ratio": 0.8,
    "core_selection": "concept",
    "gleanings": 1,
    "kg_share": 0.6,
    "mode": "g2cons",
}
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "g2cons": _SETTINGS,
    "g2cons:reference": {**_SETTINGS, "vector_format": "f32"},
}
RULES: Final = {"g2cons": DEFAULT, "g2cons:reference": REFERENCE}
