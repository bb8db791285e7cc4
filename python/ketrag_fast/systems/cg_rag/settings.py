"""The settings of CG-RAG: where citations come from, how the graph is made, how messages are passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class CgRagSettings:
    """The paper's values; what it leaves open has those of docs/cg-rag.md."""

    text_links: bool = setting(
        True,
        "links in the texts count as citations: Markdown, wiki and HTML links, references of"
        " reStructuredText, paths of indexed files",
    )
    bibliography: str | None = setting(
        None,
        "BibTeX (.bib) or CSL-JSON (.json) files, with commas between: citations by their keys in the texts"
        " and in `cites` lead to the documents that the entries name",
    )
    sparse_model: str | None = setting(
        None,
        "a sparse encoder (SPLADE and its like), sentence-transformers:NAME_OR_PATH: its weights stand in the"
        " place of BM25 in the graph and in mode cg-rag-sparse",
    )
    inter_top_n: int = setting(
        4, "texts of a cited document that each text of the citing one is linked to", low=0, high=1000
    )
    max_in_degree: int | None = setting(
        None, "edges of citations into one text, at most: those of the nearest vectors", low=0
    )
    citation_direction: Literal["cited_to_citing", "citing_to_cited", "both", "none"] = setting(
        "cited_to_citing", "which way messages pass along citations", concerns="query"
    )
    lesegr_layers: int = setting(
        2, "how often messages are passed; 0 is `text`", concerns="query", low=0, high=16
    )
    lesegr_aggregate: Literal["added", "mean"] = setting(
        "added",
        "a text adds a share of the mean of its neighbours' messages to its own, or takes the mean of all,"
        " its own among them",
        concerns="query",
    )
    lesegr_share: float = setting(
        0.75, "the neighbours' share where it is added", concerns="query", low=0.0, high=1.0
    )
    lesegr_epsilon: float = setting(
        0.1,
        "the share of its message that a text sends which has none of the question's words",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    lesegr_weights: str | None = setting(
        None, "weights that `ketrag train cg-rag` made, for mode cg-rag-trained", concerns="query"
    )
    subgraphs: int = setting(
        0,
        "of so many best texts what they are tied to is read, too: `ask` has a model summarise it for the"
        " answer, and without a model its best sentences stand beside the text; 5 is usual, 0 leaves it out",
        concerns="query",
        low=0,
        high=100,
    )
    summary_input_tokens: int = setting(
        8_000, "of a text and what it is tied to, for one summary", concerns="query", low=100, high=1_000_000
    )
    lesegr_residual: float = setting(
        0.0,
        "the share of the similarity by vectors alone in the result",
        concerns="query",
        low=0.0,
        high=1.0,
    )
