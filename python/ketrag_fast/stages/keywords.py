"""Keyword vectors: the mean of the vectors of a keyword's sentences (KET-RAG 1.2 step 9)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Sentence vectors of the fitted space are cheap and only needed here, so they are not kept."""
    words, basis = inputs["words"], inputs["vectors"]["basis"]
    indptr, indices = csr(words, "sent_words")
    once = np.ones(len(indices), np.uint32)
    sentences = _core.embed_rows(basis, indptr, indices, once, threads=context.threads)
    count = len(words["vocabulary_offsets"]) - 1
    word_sentences = _core.transpose(indptr, indices, count, threads=context.threads)
    means = _core.keyword_means(
        *word_sentences,
        sentences,
        unit=settings.keyword_norm == "unit",
        threads=context.threads,
        report=context.report,
    )
    codes, scale, residual = _core.quantise_vectors(means, threads=context.threads)
    return {
        "vectors": means,
        "keyword_codes": codes,
        "keyword_scale": scale,
        "keyword_residual": residual,
    }


STAGE = Stage(
    "keywords", version=1, needs=("words", "vectors"), settings=("keyword_norm",), run=run, unit="keywords"
)
