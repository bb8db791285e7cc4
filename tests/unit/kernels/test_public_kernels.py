"""The flat set of kernels: documented, and judged by a plain twin where there can be one."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from ketrag_fast import kernels

TESTS = Path(__file__).parents[2]

# Kernel: the function of `ketrag_fast.reference` that it is compared with.
ORACLES = {
    "betweenness": "centrality.betweenness",
    "bipartite": "bipartite.bipartite",
    "bm25": "walk_parts.bm25",
    "citation_links": "cgrag.links",
    "concept_graph": "concepts.concept_graph",
    "concept_search": "concepts.search",
    "concepts": "concepts.concepts",
    "cooccurrence_knn": "cooccurrence.cooccurrence_knn",
    "core_count": "select.core_count",
    "core_numbers": "centrality.core_numbers",
    "corpus": "text.units",
    "cosine_knn": "vectors.cosine_knn",
    "edge_alphas": "cgrag.alphas",
    "embed_rows": "vectors.embedder_cosines",
    "fill": "context.fill",
    "fit_embedder": "vectors.embedder_cosines",
    "fold_skeleton": "skeleton.fold",
    "fuse_ranks": "vectors.fuse_ranks",
    "keyword_means": "vectors.keyword_means",
    "keyword_pool": "vectors.keyword_pool",
    "kmeans": "clusters.kmeans",
    "knn_graph": "cooccurrence.knn_graph",
    "knng_order": "vectors.knng_order",
    "local_search": "local_search.local_search",
    "pagerank": "pagerank.pagerank",
    "pass_messages": "cgrag.messages",
    "personalised_pagerank": "pagerank.pagerank",
    "render": "context.render",
    "select_by_concepts": "concepts.choose_chunks",
    "select_ranked": "select.select_ranked",
    "select_uniform": "select.select_uniform",
    "spread": "pagerank.spread",
    "tokenise": "text.words",
    "top_k": "vectors.top_k",
    "vocabulary": "text.vocabulary",
    "walk": "walk.walk",
}
# Those without one, and what holds them in place of it.
OTHERWISE = {
    "build_links": "the oracle of the walk reads its arrays",
    "code_points": "Python's own decoding",
    "cooccurrence_kernels": "asks the machine",
    "count_tokens": "tests/golden/cl100k.json",
    "encode_tokens": "tests/golden/cl100k.json",
    "normalise": "NumPy",
    "pack": "unpack",
    "quantise": "the bounds that it promises",
    "renumber": "sets, in the tests",
    "sentence_spans": "cases, in the tests",
    "split_budget": "cases, in the tests",
    "stop_words": "a fixed list",
    "tokenise_many": "tokenise is one call of it",
    "token_windows": "its definition, in the tests",
    "transpose": "sets, in the tests",
    "truncate": "its definition, in the tests",
    "unpack": "pack",
}
FUNCTIONS = [name for name in kernels.__all__ if inspect.isfunction(getattr(kernels, name))]


def test_every_kernel_is_accounted_for() -> None:
    assert sorted(FUNCTIONS) == sorted([*ORACLES, *OTHERWISE])


@pytest.mark.parametrize("name", kernels.__all__)
def test_documented(name: str) -> None:
    value = getattr(kernels, name)
    if inspect.isfunction(value):
        assert value.__module__.startswith("ketrag_fast.kernels.")
        assert value.__annotations__["return"]
    assert name == "NOBODY" or len(inspect.getdoc(value) or "") > 20
    assert "tuple(" not in (inspect.getdoc(value) or "").lower(), "a named tuple without words of its own"


@pytest.mark.parametrize(("name", "oracle"), sorted(ORACLES.items()))
def test_the_oracle_is_there_and_used(name: str, oracle: str) -> None:
    module, function = oracle.split(".")
    assert callable(getattr(import_module(f"ketrag_fast.reference.{module}"), function))
    texts = [path.read_text("utf-8") for path in TESTS.rglob("test_*.py")]
    both = [
        text
        for text in texts
        if f"reference import {module}" in text
        and re.search(rf"\b{function}\(", text)
        and re.search(rf"\b(?:{name})\b", text)
    ]
    assert both, f"no test compares {name} with {oracle}"


def test_the_table_names_every_kernel() -> None:
    told = set(re.findall(r"`(\w+)`", kernels.__doc__ or ""))
    assert set(FUNCTIONS) - told == {"code_points", "cooccurrence_kernels"}
    assert told - set(kernels.__all__) <= {"threads", "report", "InputError"}
