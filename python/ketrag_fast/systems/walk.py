"""The walk: multi-hop ranking without a language model (docs/reference/modes.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ketrag_fast.systems.shared import (
    LINKS,
    SENTENCE_VECTORS,
    TERMS,
    UNITS,
    VECTORS,
    WORDS,
    has_model,
    lexical_stages,
)
from ketrag_fast.systems.spec.system import Channel, GraphSource, Recipe, Share, System

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


def _needs(settings: Settings) -> tuple[str, ...]:
    """Return the needs: vectors only from a model, because the fitted space does not improve the walk."""
    links = ("units", *lexical_stages(settings))
    return (*links, "vectors", "sentence_vectors") if has_model(settings) else links


SYSTEM = System(
    name="walk",
    order=1,
    source="docs/reference/modes.md",
    help="multi-hop ranking: from matching units to units that share keywords, names and subjects with them",
    graphs=(
        GraphSource(
            "walk",
            ("units", "links"),
            "passages, the names in them, and the subjects that they are about or mention",
            add="ketrag index --modes auto,walk",
            read="ketrag_fast.systems.shared.drawing:read_links",
            tables="ketrag_fast.systems.shared.drawing:link_graph_tables",
            order=5,
        ),
    ),
    stages=(UNITS, WORDS, LINKS, TERMS, VECTORS, SENTENCE_VECTORS),
    channels=(
        Channel(
            "walk",
            needs=_needs,
            help="several hops over shared keywords, names and subjects",
            vector="model",
        ),
    ),
    recipes={
        "walk": Recipe(
            (Share("walk"),),
            "several hops: from matching units to units that share keywords, names and subjects with them",
            automatic=0,
            usual=True,
        ),
        "survey": Recipe(
            (Share("bm25"), Share("walk")),
            "questions about the whole: excerpts of many documents, by theme",
            join="fuse",
            usual=True,
            surveys=True,
        ),
    },
)
