"""Settings of CG-RAG: sources of citations, the graph, and message passing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class CgRagSettings:
    """Defaults of the paper; docs/cg-rag.md documents the values that it leaves open."""

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
    sparse_model: str | None = setting(
        None,
        "sparse encoder such as SPLADE, sentence-transformers:NAME_OR_PATH, instead of BM25 in the"
        " graph and in mode cg-rag-sparse",
        metavar="SPEC",
    )
    inter_top_n: int = setting(
        4, "texts of a cited document that each text of the citing one is linked to", low=0, high=1000
    )
    max_in_degree: int | None = setting(
        None, "maximum number of citation edges into one text, by nearest vectors", low=0
    )
    citation_direction: Literal["cited_to_citing", "citing_to_cited", "both", "none"] = setting(
        "cited_to_citing", "direction in which messages pass along citations", concerns="query"
    )
    lesegr_layers: int = setting(
        2, "rounds of message passing; 0: same as mode text", concerns="query", low=0, high=16
    )
    lesegr_aggregate: Literal["added", "mean"] = setting(
        "added",
        "update of a text: add a share of its neighbours' mean message, or take the mean of all",
        concerns="query",
    )
    lesegr_share: float = setting(
        0.75, "share of the neighbours if lesegr_aggregate = added", concerns="query", low=0.0, high=1.0
    )
    lesegr_epsilon: float = setting(
        0.1,
        "share of its message sent by a text that has no query term",
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
    summary_input_tokens: int = setting(
        8_000,
        "maximum tokens of a passage and its neighbourhood for one summary",
        concerns="query",
        low=100,
        high=1_000_000,
    )
    lesegr_residual: float = setting(
        0.0,
        "share of the plain vector similarity in the result",
        concerns="query",
        low=0.0,
        high=1.0,
    )
