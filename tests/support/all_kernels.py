"""Every kernel of the submodules of `ketrag_fast.kernels`, public and internal, under one name."""

from __future__ import annotations

from ketrag_fast.kernels.drawing import (
    InducedEdges,
    Neighbourhood,
    Weighted,
    communities,
    induced_edges,
    layout,
    neighbourhood,
    shortest_path,
    weighted_graph,
)
from ketrag_fast.kernels.graphs import Rows, pagerank
from ketrag_fast.kernels.links import Vectors, bm25, build_links, fill, walk
from ketrag_fast.kernels.text import (
    Corpus,
    Vocabulary,
    code_points,
    corpus,
    count_tokens,
    pack,
    sentence_spans,
    tokenise,
    tokenise_many,
    unpack,
    vocabulary,
)
from ketrag_fast.kernels.vectors import (
    NOBODY,
    Clusters,
    Codes,
    cosine_knn,
    fuse_ranks,
    kmeans,
    quantise,
    top_k,
)
from ketrag_fast.systems.papers.kernels import (
    Concepts,
    CooccurrenceNeighbours,
    concepts,
    cooccurrence_kernels,
    cooccurrence_knn,
    fold_skeleton,
)
from tests.support.inner_kernels.centrality import betweenness, core_numbers
from tests.support.inner_kernels.citations import CitationLinks, citation_links, edge_alphas, pass_messages
from tests.support.inner_kernels.cooccurrence import KnnGraph, knn_graph
from tests.support.inner_kernels.g2cons import (
    ConceptGraph,
    concept_graph,
    select_by_concepts,
)
from tests.support.inner_kernels.graphs import core_count, renumber, select_ranked, select_uniform, transpose
from tests.support.inner_kernels.published import PublishedTokenizer
from tests.support.inner_kernels.text import stop_words
from tests.support.inner_kernels.vectors import (
    embed_rows,
    fit_embedder,
    keyword_means,
)

__all__ = [
    "NOBODY",
    "CitationLinks",
    "Clusters",
    "Codes",
    "ConceptGraph",
    "Concepts",
    "CooccurrenceNeighbours",
    "Corpus",
    "InducedEdges",
    "KnnGraph",
    "Neighbourhood",
    "PublishedTokenizer",
    "Rows",
    "Vectors",
    "Vocabulary",
    "Weighted",
    "betweenness",
    "bm25",
    "build_links",
    "citation_links",
    "code_points",
    "communities",
    "concept_graph",
    "concepts",
    "cooccurrence_kernels",
    "cooccurrence_knn",
    "core_count",
    "core_numbers",
    "corpus",
    "cosine_knn",
    "count_tokens",
    "edge_alphas",
    "embed_rows",
    "fill",
    "fit_embedder",
    "fold_skeleton",
    "fuse_ranks",
    "induced_edges",
    "keyword_means",
    "kmeans",
    "knn_graph",
    "layout",
    "neighbourhood",
    "pack",
    "pagerank",
    "pass_messages",
    "quantise",
    "renumber",
    "select_by_concepts",
    "select_ranked",
    "select_uniform",
    "sentence_spans",
    "shortest_path",
    "stop_words",
    "tokenise",
    "tokenise_many",
    "top_k",
    "transpose",
    "unpack",
    "vocabulary",
    "walk",
    "weighted_graph",
]
