"""The compiled kernels as functions on NumPy arrays, for use in other pipelines.

| area | kernels |
|---|---|
| text | `tokenise` `sentence_spans` `count_tokens` `pack` `unpack` |
| documents to units and keywords | `corpus` `vocabulary` |
| search without a model | `build_links` `bm25` `walk` |
| neighbours and vectors | `cosine_knn` `top_k` `kmeans` `Encoder` |
| graphs | `pagerank` |
| contexts | `fuse_ranks` `fill` |

All kernels release the interpreter lock, return the same bytes on any number of `threads` (0: all cores), and
raise `ketrag_fast.errors.InputError` for arrays that do not fit together. Slow kernels take `report`, which
is called with (done, total) and stops the work by returning False. Compressed rows are pairs
(indptr uint64 [rows + 1], indices uint32); results are ordered by score descending, then id ascending.
"""

from __future__ import annotations

from importlib import import_module

# A module is imported when one of its names is first used. For type checkers this name is true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ketrag_fast.kernels.encoder import Encoder
    from ketrag_fast.kernels.graphs import pagerank
    from ketrag_fast.kernels.links import Vectors, bm25, build_links, fill, walk
    from ketrag_fast.kernels.text import (
        Corpus,
        Vocabulary,
        corpus,
        count_tokens,
        pack,
        sentence_spans,
        tokenise,
        unpack,
        vocabulary,
    )
    from ketrag_fast.kernels.vectors import (
        Clusters,
        cosine_knn,
        fuse_ranks,
        kmeans,
        top_k,
    )

_HOMES = {
    "Clusters": "vectors",
    "Corpus": "text",
    "Encoder": "encoder",
    "Vectors": "links",
    "Vocabulary": "text",
    "bm25": "links",
    "build_links": "links",
    "corpus": "text",
    "cosine_knn": "vectors",
    "count_tokens": "text",
    "fill": "links",
    "fuse_ranks": "vectors",
    "kmeans": "vectors",
    "pack": "text",
    "pagerank": "graphs",
    "sentence_spans": "text",
    "tokenise": "text",
    "top_k": "vectors",
    "unpack": "text",
    "vocabulary": "text",
    "walk": "links",
}

__all__ = [
    "Clusters",
    "Corpus",
    "Encoder",
    "Vectors",
    "Vocabulary",
    "bm25",
    "build_links",
    "corpus",
    "cosine_knn",
    "count_tokens",
    "fill",
    "fuse_ranks",
    "kmeans",
    "pack",
    "pagerank",
    "sentence_spans",
    "tokenise",
    "top_k",
    "unpack",
    "vocabulary",
    "walk",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
