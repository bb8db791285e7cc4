"""The KNN graph over chunks: half lexical, half semantic neighbours (KET-RAG 1.2 steps 3 to 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.backends.ann.choose import choose, installed
from ketrag_fast.backends.ann.neighbours import nearest_rows
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr, csr_out

NONE = np.uint32(0xFFFFFFFF)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """An odd neighbour is semantic; what is a lexical neighbour is no semantic one as well."""
    words, vectors = inputs["words"], inputs["vectors"]
    name = "chunk_words" if "chunk_words_indptr" in words else "unit_words"
    chunk_vectors = vectors.get("chunk_vectors", vectors["unit_vectors"])
    lexical_k = settings.knn_k // 2
    lexical, shared = _core.cooccurrence_knn(
        *csr(words, name),
        len(words["vocabulary_offsets"]) - 1,
        lexical_k,
        max_df_ratio=settings.max_df_ratio,
        threads=context.threads,
        report=context.report,
    )
    semantic_k = settings.knn_k - lexical_k
    if choose(len(chunk_vectors), settings.ann, settings.knn_ann_from, installed()) == "hnsw":
        semantic, similarity = nearest_rows(
            chunk_vectors,
            semantic_k,
            _rows(lexical),
            context.scratch,
            settings.seed,
            context.threads,
            context.report,
        )
    else:
        semantic, similarity = _core.cosine_knn(
            chunk_vectors,
            semantic_k,
            exclude=_rows(lexical),
            threads=context.threads,
            report=context.report,
        )
    return {
        "lexical": lexical,
        "lexical_counts": shared,
        "semantic": semantic,
        "semantic_scores": similarity,
        **csr_out("graph", _core.knn_graph(lexical, semantic)),
    }


def _rows(neighbours: NDArray[np.uint32]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Padded rows as compressed ones, ids ascending."""
    ordered = np.sort(neighbours, axis=1)
    present = ordered != NONE
    indptr = np.zeros(len(ordered) + 1, np.uint64)
    np.cumsum(present.sum(axis=1), out=indptr[1:])
    return indptr, ordered[present]


STAGE = Stage(
    "knn",
    version=1,
    needs=("words", "vectors"),
    settings=("knn_k", "max_df_ratio", "ann", "knn_ann_from", "seed"),
    run=run,
    unit="chunks",
)
