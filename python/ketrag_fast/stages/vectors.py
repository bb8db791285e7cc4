"""Vectors of units and chunks from the space fitted on the corpus itself: no model is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """`basis` makes a question's vector; the codes are an eight-bit copy that preselects."""
    words = inputs["words"]
    indptr, indices = csr(words, "unit_words")
    count = len(words["vocabulary_offsets"]) - 1
    basis = _core.fit_embedder(
        indptr,
        indices,
        words["unit_counts"],
        count,
        dims=settings.builtin_dim,
        seed=settings.seed,
        threads=context.threads,
        report=context.report,
    )
    units = _core.embed_rows(basis, indptr, indices, words["unit_counts"], threads=context.threads)
    codes, scale, residual = _core.quantise_vectors(units, threads=context.threads)
    outputs: dict[str, NDArray[Any]] = {
        "basis": basis,
        "unit_vectors": units,
        "unit_codes": codes,
        "unit_scale": scale,
        "unit_residual": residual,
    }
    if "chunk_words_indptr" in words:
        indptr, indices = csr(words, "chunk_words")
        once = np.ones(len(indices), np.uint32)
        outputs["chunk_vectors"] = _core.embed_rows(basis, indptr, indices, once, threads=context.threads)
    return outputs


STAGE = Stage(
    "vectors",
    version=1,
    needs=("words",),
    settings=("embedder", "builtin_dim", "seed"),
    run=run,
    unit="steps",
)
