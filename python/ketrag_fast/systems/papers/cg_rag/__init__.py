"""CG-RAG: similarity to the query passes along citations, references and neighbouring texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared import LINKS, TERMS, UNITS, VECTORS, WORDS
from ketrag_fast.systems.spec.arrays import ANY, Sizes, array, graph, strings
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage
from ketrag_fast.systems.spec.system import Around, Channel, GraphSource, Recipe, Share, System, Training

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


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
        reaches="files",
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
        None,
        "weights for mode cg-rag-trained (`ketrag bench train cg-rag`)",
        metavar="FILE",
        concerns="query",
    )
    subgraphs: int = setting(
        0,
        "number of top passages whose citation neighbourhood is summarised (without an LLM: quoted);"
        " 5 is usual",
        concerns="query",
        low=0,
        high=100,
    )


_HERE = "ketrag_fast.systems.papers.cg_rag"

# Citations link whole documents; `documents` counts sections if documents are cut at headings.
CITATIONS = Stage(
    "citations",
    version=2,
    needs=(DOCUMENTS, "units"),
    settings=("text_links",),
    run=f"{_HERE}.citations:run",
    unit="documents",
    look=f"{_HERE}.citations:look",
    arrays={
        **graph("cites", "whole_documents", "whole_documents"),
        "cite_source": array("u8", "citations"),
        **strings("unresolved", "unresolved_citations"),
        "unresolved_document": array("u32", "unresolved_citations", below="whole_documents", rising=True),
        **graph("references", "units", "units"),
        "duplicate": array("u32", "duplicate_documents", below="whole_documents", rising=True),
        "counts": array("u64", 3),
    },
    counts={"citations": "citations"},
    seconds=lambda size: 5e-5 * size.get("documents", 0),
)


def _graph_needs(settings: Settings) -> tuple[str, ...]:
    """Return the stages that the graph needs: terms of a sparse encoder, or else words."""
    words = "links" if settings.sparse_model is None else "terms"
    return ("units", words, "vectors", "citations")


def _sparse_needs(settings: Settings) -> tuple[str, ...]:
    """Return the stages that `cg-rag-sparse` needs; without a sparse encoder its own stage is missing."""
    own = () if settings.sparse_model is None else ("terms",)
    return ("units", "vectors", "citations", "citation_graph", *own)


CITATION_GRAPH = Stage(
    "citation_graph",
    version=3,
    needs=_graph_needs,
    settings=(),
    run=f"{_HERE}.graph:run",
    unit="documents",
    arrays={
        **graph("edges", "units", "units"),
        "edge_kind": array("u8", "citation_edges"),
        "edge_alpha": array("f32", "citation_edges"),
        "edge_relevance": array("f64", "citation_edges"),
        "embedder": array("u8", ANY),
    },
    edges={"citation_graph": ("edges_indices", 1)},
    seconds=lambda size: 2e-5 * size.get("units", 0),
)

CHANNELS = (
    Channel(
        "cg-rag",
        needs=("units", "links", "vectors", "citations", "citation_graph"),
        help="vector similarity, weighted by shared words and passed along citations",
        vector="yes",
        settings=("citation_direction", "lesegr_share", "lesegr_epsilon"),
        caution=f"{_HERE}.inspection:caution",
    ),
    Channel(
        "cg-rag-trained",
        needs=("units", "links", "vectors", "citations", "citation_graph"),
        help="cg-rag with a graph transformer trained on judged questions",
        rank=f"{_HERE}.trained:rank",
        vector="yes",
        settings=("lesegr_weights",),
        caution=f"{_HERE}.inspection:caution",
        lacks=f"{_HERE}.trained:lacks",
    ),
    Channel(
        "cg-rag-sparse",
        needs=_sparse_needs,
        help="cg-rag with the weights of a sparse encoder instead of BM25",
        rank=f"{_HERE}.graph:rank",
        vector="yes",
        settings=("citation_direction", "lesegr_share", "lesegr_epsilon"),
        caution=f"{_HERE}.inspection:caution",
        lacks=f"{_HERE}.graph:lacks",
    ),
)

_AROUND = Around(f"{_HERE}.graph:strongest_senders", count="subgraphs", tokens=8_000)

RECIPES = {
    "cg-rag": Recipe(
        (Share("cg-rag"),),
        "vector similarity, weighted by the words that a unit shares with the query, and passed along "
        "citations, references and neighbouring units",
        around=_AROUND,
    ),
    "cg-rag-sparse": Recipe(
        (Share("cg-rag-sparse"),),
        "cg-rag with the weights of a sparse encoder (`sparse_model`) instead of BM25",
        around=_AROUND,
    ),
    "cg-rag-trained": Recipe(
        (Share("cg-rag-trained"),),
        "the candidates of `cg-rag`, ranked by a graph transformer that was trained on judged questions",
        around=_AROUND,
    ),
}

_SETTINGS: Mapping[str, Any] = {"mode": "cg-rag", "modes": "bm25,text,fused,walk,cg-rag"}


def describe(sizes: Sizes) -> Mapping[str, Any]:
    """Return the rows that `ketrag stats` prints."""
    names = ("citations", "unresolved_citations", "duplicate_documents")
    return {name: sizes.get(name, 0) for name in names} if "unresolved_citations" in sizes else {}


SYSTEM = System(
    name="cg-rag",
    order=5,
    source="CG-RAG: contextual citation graph and LeSeGR; with the decisions of docs/internals/cg-rag.md",
    help="a graph of citations, links and references that passes relevance between texts",
    graphs=(
        GraphSource(
            "citations",
            ("units", "citations"),
            "documents and which of them cite which",
            add="ketrag index --modes auto,cg-rag",
            read=f"{_HERE}.inspection:read_citations",
            tables=f"{_HERE}.inspection:citation_tables",
            order=4,
        ),
    ),
    settings=CgRagSettings,
    stages=(UNITS, WORDS, LINKS, TERMS, VECTORS, CITATIONS, CITATION_GRAPH),
    channels=CHANNELS,
    recipes=RECIPES,
    presets={"cg-rag": _SETTINGS},
    describe=describe,
    details=f"{_HERE}.inspection:details",
    inspect=f"{_HERE}.inspection:CitationGraph",
    train=Training(
        f"{_HERE}.training:train_on",
        mode="cg-rag-trained",
        setting="lesegr_weights",
        file="lesegr.safetensors",
    ),
)
