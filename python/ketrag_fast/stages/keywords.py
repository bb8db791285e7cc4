"""Keyword vectors: the mean of the vectors of a keyword's sentences (KET-RAG 1.2 step 9)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.errors import InternalError
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Sentence vectors of the fitted space are cheap and only needed here, so they are not kept."""
    words, vectors = inputs["words"], inputs["vectors"]
    indptr, indices = csr(words, "sent_words")
    if "basis" in vectors:
        once = np.ones(len(indices), np.uint32)
        sentences = _core.embed_rows(vectors["basis"], indptr, indices, once, threads=context.threads)
    else:
        sentences = np.concatenate([vectors["walk_sentence_vectors"], vectors["title_sentence_vectors"]])
    if len(sentences) != len(indptr) - 1:
        raise InternalError(f"{len(sentences)} sentence vectors for {len(indptr) - 1} sentences")
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
    "keywords",
    version=1,
    needs=("words", "vectors"),
    settings=("keyword_norm",),
    run=run,
    unit="keywords",
)
