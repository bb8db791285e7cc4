"""Baseline retrieval: BM25, vectors, and both fused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ketrag_fast.systems.shared import LINKS, TERMS, UNIT_SEARCH, UNITS, VECTORS, WORDS, lexical_stages
from ketrag_fast.systems.spec.system import Channel, Recipe, Share, System

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


def _needs(settings: Settings) -> tuple[str, ...]:
    return ("units", *lexical_stages(settings))


SYSTEM = System(
    name="plain",
    order=0,
    source="BM25: Robertson, Zaragoza 2009; fusion: Cormack, Clarke, Buettcher 2009",
    help="baseline rankings: BM25, vectors, their fusion",
    stages=(UNITS, WORDS, LINKS, TERMS, VECTORS, UNIT_SEARCH),
    channels=(
        Channel("bm25", needs=_needs, help="units that share rare terms with the query"),
        Channel(
            "text",
            needs=("units", "vectors", "unit_search"),
            help="units nearest to the query vector",
            vector="yes",
            searches=("units",),
        ),
    ),
    recipes={
        "bm25": Recipe(
            (Share("bm25"),), "units that share rare terms with the query", automatic=2, usual=True
        ),
        "text": Recipe((Share("text"),), "units nearest to the query vector", automatic=3, usual=True),
        "fused": Recipe(
            (Share("bm25"), Share("text")),
            "`bm25` and `text`, fused by reciprocal rank",
            join="fuse",
            automatic=1,
            usual=True,
        ),
    },
    presets={"default": {}},
)
