"""Settings of CG-RAG: sources of citations, and message passing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class CgRagSettings:
    """docs/internals/cg-rag.md documents the values, and what was measured with others."""

    text_links: bool = setting(
        True,
        "treat links in texts as citations: Markdown, wiki and HTML links, reStructuredText"
        " references, paths of indexed files",
    )
    bibliography: str | None = setting(
        None,
        "BibTeX (.bib) or CSL-JSON (.json) files, comma-separated, that resolve citation keys to documents",
        metavar="FILES",
    )
    citation_direction: Literal["cited_to_citing", "citing_to_cited", "both", "none"] = setting(
        "cited_to_citing", "direction in which messages pass along citations", concerns="query"
    )
    lesegr_share: float = setting(
        0.05,
        "share of its neighbours' mean message that a text adds to its own",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    lesegr_epsilon: float | None = setting(
        None,
        "share of its message sent by a text that has no query term; none: 0.6 with an embedding model, else"
        " 0.1",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    lesegr_weights: str | None = setting(
        None, "weights from `ketrag train cg-rag`, for mode cg-rag-trained", metavar="FILE", concerns="query"
    )
    subgraphs: int = setting(
        0,
        "number of top passages whose citation neighbourhood is summarised (without an LLM: quoted);"
        " 5 is usual",
        concerns="query",
        low=0,
        high=100,
    )
