"""The KNN graph, PageRank over it, and the core chunks (KET-RAG, Algorithm 3)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.vectors import top_k
from ketrag_fast.models.ann import Floats, HnswGraph, choose
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.ket_rag import KetRagSettings, KetRules
from ketrag_fast.systems.shared.hnsw_proposals import kind
from ketrag_fast.systems.shared.rows import csr, csr_out
from ketrag_fast.systems.shared.vectors import chunk_vectors
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

NONE = np.uint32(0xFFFFFFFF)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the KNN graph. With an odd k, the extra neighbour is semantic; no neighbour counts twice."""
    own, rules = settings.of(KetRagSettings), settings.of(KetRules)
    words = inputs["words"]
    of_units = rules.core_unit == "subchunk"
    name = "chunk_words" if "chunk_words_indptr" in words and not of_units else "unit_words"
    count = len(words["vocabulary_offsets"]) - 1
    if rules.words == "published":
        words = inputs["reference_words"]
        name, count = "cooc", int(words["cooc_count"][0])
    nodes = _nodes(inputs, of_units).decode()
    lexical_k = own.knn_k // 2
    lexical, shared = _core.cooccurrence_knn(
        *csr(words, name),
        count,
        lexical_k,
        allow_zero=rules.knn_zero,
        threads=context.threads,
        report=context.report,
    )
    semantic_k = own.knn_k - lexical_k
    exclude = None if rules.knn_repeats else _rows(lexical)
    if choose(len(nodes), settings.ann) == "hnsw":
        semantic, similarity = nearest_rows(nodes, semantic_k, exclude, settings.seed, context)
    else:
        semantic, similarity = _core.cosine_knn(
            nodes, semantic_k, exclude=exclude, threads=context.threads, report=context.report
        )
    graph = _core.knn_graph(lexical, semantic)
    return {
        "lexical": lexical,
        "lexical_counts": shared,
        "semantic": semantic,
        "semantic_scores": similarity,
        # A separate array name, because modes that walk over chunks do not read it.
        **csr_out("unit_graph" if _over_units(inputs, of_units) else "graph", graph),
    }


def kind_of_graph(inputs: StageInputs, settings: Settings, _: StageContext) -> str:
    """Return the variant of the stage: whether hnswlib is used."""
    nodes = _nodes(inputs, settings.of(KetRules).core_unit == "subchunk")
    return kind(len(nodes), settings)


def _nodes(inputs: StageInputs, of_units: bool) -> StoredVectors:
    own = None if of_units else chunk_vectors(inputs.get("chunk_vectors", {}), inputs["vectors"])
    return StoredVectors.of(inputs["vectors"]) if own is None else own


def _over_units(inputs: StageInputs, of_units: bool) -> bool:
    """Return whether the nodes are units that are not chunks."""
    units = inputs["units"]
    return of_units and len(units["unit_tokens"]) != len(units["chunk_document"])


def _rows(neighbours: NDArray[np.uint32]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return padded rows as compressed rows with ascending ids."""
    ordered = np.sort(neighbours, axis=1)
    present = ordered != NONE
    indptr = np.zeros(len(ordered) + 1, np.uint64)
    np.cumsum(present.sum(axis=1), out=indptr[1:])
    return indptr, ordered[present]


_MARGIN = 32
_ROWS = 1_000
Rows = tuple[NDArray[np.uint64], NDArray[np.uint32]]


def nearest_rows(
    vectors: Floats, k: int, exclude: Rows | None, seed: int, context: StageContext
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Return the k nearest rows of each row, like `kernels.vectors.cosine_knn`, with hnswlib candidates.

    Scores are exact and ties go to the smaller id. A row with too few candidates, after `exclude` or because
    the graph is disconnected, is compared with all others.
    """
    count = len(vectors)
    wanted = max(min(k, count - 1), 0)
    ids = np.full((count, wanted), NONE, np.uint32)
    scores = np.zeros((count, wanted), np.float64)
    if not wanted:
        return ids, scores
    none = np.zeros(count + 1, np.uint64), np.zeros(0, np.uint32)
    indptr, indices = none if exclude is None else exclude
    most = int(np.diff(indptr.astype(np.int64)).max(initial=0))
    asked = min(count, wanted + 1 + most + _MARGIN)
    with tempfile.TemporaryDirectory(dir=context.scratch) as folder:
        graph = HnswGraph.build(vectors, Path(folder) / "knn", seed, context.report)
        for start in range(0, count, _ROWS):
            block = np.ascontiguousarray(vectors[start : start + _ROWS])
            found = graph.candidates(block, asked, context.threads)
            for place, query in enumerate(block):
                row = start + place
                others = [row, *indices[int(indptr[row]) : int(indptr[row + 1])].tolist()]
                zero = not query.any()  # a zero vector has no neighbours
                pool = None if found is None else np.setdiff1d(found[place], others)
                if pool is None or len(pool) < wanted or zero:
                    pool = np.setdiff1d(np.arange(count, dtype=np.uint32), others)
                if zero:
                    chosen, exact = pool[:wanted], np.zeros(min(wanted, len(pool)))
                elif len(pool) > asked:
                    best, sums = top_k(vectors, query[None], wanted, ids=pool, threads=context.threads)
                    chosen, exact = best[0], sums[0]
                else:
                    # Products in f64, summed in the order of the dimensions, as the core does.
                    products = vectors[pool].astype(np.float64) * query.astype(np.float64)
                    sums = np.cumsum(products, axis=1)[:, -1]
                    order = np.lexsort((pool, -sums))[:wanted]
                    chosen, exact = pool[order], sums[order]
                ids[row, : len(chosen)] = chosen
                scores[row, : len(exact)] = exact
    return ids, scores


def select_by_rank(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the core chunks, most important first; the reader processes them in this order.

    With the rule `core_unit` = subchunk, units are selected (`core_units`, in order); a chunk is core if one
    of its units is, and takes the position of the first.
    """
    own = settings.of(KetRules)
    knn = inputs["knn"]
    name = "unit_graph" if "unit_graph_indptr" in knn else "graph"
    scores = _core.pagerank(
        *csr(knn, name),
        until="networkx" if own.core_rank == "networkx" else "tolerance",
        threads=context.threads,
        report=context.report,
    )
    core = _core.select_ranked(scores, core_count(len(scores), settings))
    return {"pagerank": np.asarray(scores), **core_chunks(core, inputs, settings)}


def select_at_random(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return randomly selected core chunks (KET-RAG-U), which needs no graph."""
    units = inputs["units"]
    nodes = "unit_chunk" if settings.of(KetRules).core_unit == "subchunk" else "chunk_document"
    count = len(units[nodes])
    return core_chunks(
        _core.select_uniform(count, core_count(count, settings), settings.seed, "core"), inputs, settings
    )


def core_count(nodes: int, settings: Settings) -> int:
    """Return the number of core nodes."""
    if settings.of(KetRules).core_rounding == "down":
        return int(nodes * settings.of(KetRagSettings).core_ratio)
    return _core.core_count(nodes, settings.of(KetRagSettings).core_ratio)


def core_chunks(core: NDArray[np.uint32], inputs: StageInputs, settings: Settings) -> dict[str, NDArray[Any]]:
    """Return the selected nodes as core chunks."""
    if settings.of(KetRules).core_unit != "subchunk":
        return {"core": np.asarray(core)}
    chunks = inputs["units"]["unit_chunk"][core]
    return {"core": np.asarray(list(dict.fromkeys(chunks.tolist())), np.uint32), "core_units": core}
