"""The compiled kernels on NumPy arrays, for people who build their own pipeline.

| area | kernels |
|---|---|
| words, tokens, cutting | `tokenise` `tokenise_many` `stop_words` `count_tokens` `encode_tokens` `truncate` |
| | `token_windows` `sentence_spans` `corpus` `vocabulary` `pack` `unpack` |
| neighbours | `cooccurrence_knn` `cosine_knn` `knn_graph` |
| graphs and ranks | `bipartite` `transpose` `renumber` `pagerank` `personalised_pagerank` |
| central nodes | `core_numbers` `betweenness` `spread` |
| core selection | `core_count` `select_ranked` `select_uniform` |
| clusters | `kmeans` |
| vectors | `normalise` `quantise` `top_k` `fit_embedder` `embed_rows` `fuse_ranks` |
| channels | `keyword_means` `keyword_pool` `knng_order` `build_links` `bm25` `walk` |
| the skeleton | `fold_skeleton` `local_search` |
| citations | `citation_links` `edge_alphas` `pass_messages` |
| concepts | `concepts` `concept_graph` `select_by_concepts` `concept_search` |
| the context | `split_budget` `fill` `render` |
| parity with published code | `PublishedTokenizer` |

All of them release the interpreter, give the same bytes on any number of `threads` (0: all cores), and
raise `ketrag_fast.errors.InputError` for arrays that do not fit together. Long ones take `report`, which
is called with (done, total) and stops the work by returning False. Compressed rows are pairs
(indptr uint64 [rows + 1], indices uint32); results are ordered by score descending, then id ascending.
"""

from __future__ import annotations

from ketrag_fast.kernels.centrality import Reached, betweenness, core_numbers, spread
from ketrag_fast.kernels.citations import CitationLinks, citation_links, edge_alphas, pass_messages
from ketrag_fast.kernels.clusters import Clusters, kmeans
from ketrag_fast.kernels.context import FilledContext, fill, render, split_budget
from ketrag_fast.kernels.cooccurrence import (
    NOBODY,
    CooccurrenceNeighbours,
    KnnGraph,
    cooccurrence_kernels,
    cooccurrence_knn,
    knn_graph,
)
from ketrag_fast.kernels.g2cons import (
    ConceptGraph,
    Concepts,
    ConceptUnits,
    concept_graph,
    concept_search,
    concepts,
    select_by_concepts,
)
from ketrag_fast.kernels.graphs import (
    Bipartite,
    Rows,
    bipartite,
    core_count,
    pagerank,
    personalised_pagerank,
    renumber,
    select_ranked,
    select_uniform,
    transpose,
)
from ketrag_fast.kernels.links import Vectors, bm25, build_links, walk
from ketrag_fast.kernels.published import PublishedTokenizer
from ketrag_fast.kernels.skeleton import LocalContext, fold_skeleton, local_search
from ketrag_fast.kernels.text import (
    Corpus,
    Vocabulary,
    code_points,
    corpus,
    count_tokens,
    encode_tokens,
    pack,
    sentence_spans,
    stop_words,
    token_windows,
    tokenise,
    tokenise_many,
    truncate,
    unpack,
    vocabulary,
)
from ketrag_fast.kernels.vectors import (
    Codes,
    KeywordPool,
    cosine_knn,
    embed_rows,
    fit_embedder,
    fuse_ranks,
    keyword_means,
    keyword_pool,
    knng_order,
    normalise,
    quantise,
    top_k,
)

__all__ = [
    "NOBODY",
    "Bipartite",
    "CitationLinks",
    "Clusters",
    "Codes",
    "ConceptGraph",
    "ConceptUnits",
    "Concepts",
    "CooccurrenceNeighbours",
    "Corpus",
    "FilledContext",
    "KeywordPool",
    "KnnGraph",
    "LocalContext",
    "PublishedTokenizer",
    "Reached",
    "Rows",
    "Vectors",
    "Vocabulary",
    "betweenness",
    "bipartite",
    "bm25",
    "build_links",
    "citation_links",
    "code_points",
    "concept_graph",
    "concept_search",
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
    "encode_tokens",
    "fill",
    "fit_embedder",
    "fold_skeleton",
    "fuse_ranks",
    "keyword_means",
    "keyword_pool",
    "kmeans",
    "knn_graph",
    "knng_order",
    "local_search",
    "normalise",
    "pack",
    "pagerank",
    "pass_messages",
    "personalised_pagerank",
    "quantise",
    "render",
    "renumber",
    "select_by_concepts",
    "select_ranked",
    "select_uniform",
    "sentence_spans",
    "split_budget",
    "spread",
    "stop_words",
    "token_windows",
    "tokenise",
    "tokenise_many",
    "top_k",
    "transpose",
    "truncate",
    "unpack",
    "vocabulary",
    "walk",
]
