"""Every kernel is compared with a plain oracle if it can have one; the public ones are documented."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

from ketrag_fast import kernels
from tests.support import all_kernels, inner_kernels

TESTS = Path(__file__).parents[2]

# Kernel: the function of `tests.oracles` that it is compared with.
ORACLES = {
    "betweenness": "centrality.betweenness",
    "bm25": "walk_parts.bm25",
    "citation_links": "cg_rag.links",
    "communities": "drawing.communities",
    "concept_graph": "concepts.concept_graph",
    "concepts": "concepts.concepts",
    "cooccurrence_knn": "cooccurrence.cooccurrence_knn",
    "core_count": "select.core_count",
    "core_numbers": "centrality.core_numbers",
    "corpus": "passages.passages",
    "cosine_knn": "vectors.cosine_knn",
    "edge_alphas": "cg_rag.alphas",
    "embed_rows": "vectors.embedder_cosines",
    "fill": "context.fill",
    "fit_embedder": "vectors.embedder_cosines",
    "fold_skeleton": "skeleton.fold",
    "fuse_ranks": "vectors.fuse_ranks",
    "keyword_means": "vectors.keyword_means",
    "kmeans": "clusters.kmeans",
    "knn_graph": "cooccurrence.knn_graph",
    "layout": "drawing.layout",
    "neighbourhood": "drawing.neighbourhood",
    "pagerank": "pagerank.pagerank",
    "pass_messages": "cg_rag.messages",
    "renumber": "transpose.renumber",
    "select_by_concepts": "concepts.choose_chunks",
    "select_ranked": "select.select_ranked",
    "select_uniform": "select.select_uniform",
    "shortest_path": "drawing.shortest_path",
    "tokenise": "text.words",
    "top_k": "vectors.top_k",
    "transpose": "transpose.transpose",
    "vocabulary": "text.vocabulary",
    "walk": "walk.walk",
    "weighted_graph": "drawing.weighted",
}
# Those without one, and what holds them in place of it.
OTHERWISE = {
    "build_links": "the oracle of the walk reads its arrays",
    "code_points": "Python's own decoding",
    "cooccurrence_kernels": "asks the machine",
    "count_tokens": "tests/golden/cl100k.json",
    "induced_edges": "all pairs, in the tests",
    "pack": "unpack",
    "quantise": "the bounds that it promises",
    "sentence_spans": "cases, in the tests",
    "stop_words": "a fixed list",
    "tokenise_many": "tokenise is one call of it",
    "unpack": "pack",
}
# Argument conversion, and classes with tests of their own: unit/test_encoder.py, parity/test_text.py.
NOT_KERNELS = {
    *(f"ketrag_fast.kernels.{name}" for name in ("arrays", "encoder")),
    "tests.support.inner_kernels.published",
}
HOMES = ("ketrag_fast.kernels.", "ketrag_fast.systems.papers.kernels", "tests.support.inner_kernels.")
FUNCTIONS = [name for name in all_kernels.__all__ if inspect.isfunction(getattr(all_kernels, name))]


def functions_of(module: str) -> list[str]:
    """Return the names of the functions that a module defines, without its private ones."""
    own = import_module(module)
    return [
        name
        for name, value in inspect.getmembers(own, inspect.isfunction)
        if value.__module__ == own.__name__ and not name.startswith("_")
    ]


def test_every_kernel_is_accounted_for() -> None:
    packages = (kernels, inner_kernels)
    modules = [
        f"{own.__name__}.{info.name}" for own in packages for info in pkgutil.iter_modules(own.__path__)
    ]
    modules.append("ketrag_fast.systems.papers.kernels")
    assert set(modules) > NOT_KERNELS
    defined = [name for module in modules if module not in NOT_KERNELS for name in functions_of(module)]
    assert sorted(defined) == sorted(FUNCTIONS) == sorted([*ORACLES, *OTHERWISE])


@pytest.mark.parametrize("name", all_kernels.__all__)
def test_documented(name: str) -> None:
    value = getattr(all_kernels, name)
    if inspect.isfunction(value):
        assert value.__module__.startswith(HOMES)
        assert value.__annotations__["return"]
    assert name == "NOBODY" or len(inspect.getdoc(value) or "") > 20
    assert "tuple(" not in (inspect.getdoc(value) or "").lower(), "a named tuple without words of its own"


@pytest.mark.parametrize("name", [name for name in kernels.__all__ if name[0].islower()])
def test_each_public_kernel_has_an_example(name: str) -> None:
    assert name in FUNCTIONS
    assert re.search(rf"^ *>>> .*\b{name}\(", inspect.getdoc(getattr(kernels, name)) or "", re.MULTILINE)


@pytest.mark.parametrize(("name", "oracle"), sorted(ORACLES.items()))
def test_the_oracle_is_there_and_used(name: str, oracle: str) -> None:
    module, function = oracle.split(".")
    assert callable(getattr(import_module(f"tests.oracles.{module}"), function))
    texts = [path.read_text("utf-8") for path in TESTS.rglob("test_*.py")]
    both = [
        text
        for text in texts
        if f"oracles import {module}" in text
        and re.search(rf"\b{function}\(", text)
        and re.search(rf"\b(?:{name})\b", text)
    ]
    assert both, f"no test compares {name} with {oracle}"


def test_the_table_names_every_public_kernel() -> None:
    table = "\n".join(line for line in (kernels.__doc__ or "").splitlines() if line.startswith("|"))
    functions = {name for name in kernels.__all__ if inspect.isfunction(getattr(kernels, name))}
    assert set(re.findall(r"`(\w+)`", table)) == functions | {"Encoder"}
    assert functions <= set(FUNCTIONS)
