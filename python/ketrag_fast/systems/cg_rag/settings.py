"""The settings of CG-RAG: sources of citations, the graph, and message passing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class CgRagSettings:
    """The paper's values; docs/cg-rag.md explains those that it leaves open."""

    text_links: bool = setting(
        True,
        "links in the texts count as citations: Markdown, wiki and HTML links, references of"
        " reStructuredText, paths of indexed files",
    )
    bibliography: str | None = setting(
        None,
        "comma-separated BibTeX (.bib) or CSL-JSON (.json) files, which resolve citation keys in the texts"
        " and in `cites`",
    )
    sparse_model: str | None = setting(
        None,
        "sparse encoder (such as SPLADE), sentence-transformers:NAME_OR_PATH, used instead of BM25 in the"
        " graph and in mode cg-rag-sparse",
    )
    inter_top_n: int = setting(
        4,
        "number of texts of a cited document that each text of the citing one is linked to",
        low=0,
        high=1000,
    )
    max_in_degree: int | None = setting(
        None, "maximum number of citation edges into one text, by vector similarity", low=0
    )
    citation_direction: Literal["cited_to_citing", "citing_to_cited", "both", "none"] = setting(
        "cited_to_citing", "direction of messages along citations", concerns="query"
    )
    lesegr_layers: int = setting(
        2, "number of rounds of message passing; 0 equals `text`", concerns="query", low=0, high=16
    )
    lesegr_aggregate: Literal["added", "mean"] = setting(
        "added",
        "combine a text with its neighbours: add a share of their mean, or take the mean of all including"
        " the text",
        concerns="query",
    )
    lesegr_share: float = setting(
        0.75, "share of the neighbours when it is added", concerns="query", low=0.0, high=1.0
    )
    lesegr_epsilon: float = setting(
        0.1,
        "factor of messages from texts without any word of the query",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    lesegr_weights: str | None = setting(
        None, "weights from `ketrag train cg-rag`, for mode cg-rag-trained", concerns="query"
    )
    subgraphs: int = setting(
        0,
        "number of top passages whose citation neighbourhood is added: `ask` summarises it with a model;"
        " without one its best sentences are printed; 5 is usual, 0 turns it off",
        concerns="query",
        low=0,
        high=100,
    )
    summary_input_tokens: int = setting(
        8_000,
        "maximum input tokens of one summary of a passage and its neighbourhood",
        concerns="query",
        low=100,
        high=1_000_000,
    )
    lesegr_residual: float = setting(
        0.0,
        "share of plain vector similarity in the score",
        concerns="query",
        low=0.0,
        high=1.0,
    )
