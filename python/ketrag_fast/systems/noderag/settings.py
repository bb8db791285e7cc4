"""Settings of NodeRAG: what its generated texts cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class NodeRagSettings:
    """How many texts are generated, and by what."""

    max_attributes: int | None = setting(
        None, "maximum number of entities with an attribute, by betweenness", low=0
    )
    generated_texts: Literal["auto", "rules"] = setting(
        "auto",
        "attributes and high-level elements: by the LLM if there is one, or always assembled from units",
        topic="reading",
    )
