"""Keyword vectors: the mean of the vectors of a keyword's sentences (KET-RAG 1.2 step 9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.declarations.stage import Outputs, StageContext, StageInputs
from ketrag_fast.errors import InternalError
from ketrag_fast.stages.rows import U32, U64, csr
from ketrag_fast.systems.ket_rag.settings import KetRagSettings


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Sentence vectors of the fitted space are cheap and only needed here, so they are not kept."""
    words, vectors = inputs["words"], inputs["vectors"]
    if settings.words == "published":
        rows, sentences = _published(inputs, settings, context)
    else:
        indptr, indices = csr(words, "sent_words")
        if "basis" in vectors:
            once = np.ones(len(indices), np.uint32)
            sentences = _core.embed_rows(vectors["basis"], indptr, indices, once, threads=context.threads)
        else:
            own = inputs["sentence_vectors"]
            sentences = np.concatenate([own["walk_sentence_vectors"], own["title_sentence_vectors"]])
        if len(sentences) != len(indptr) - 1:
            raise InternalError(f"{len(sentences)} sentence vectors for {len(indptr) - 1} sentences")
        count = len(words["vocabulary_offsets"]) - 1
        rows = _core.transpose(indptr, indices, count, threads=context.threads)
    means = _core.keyword_means(
        *rows,
        sentences,
        unit=settings.of(KetRagSettings).keyword_norm == "unit",
        threads=context.threads,
        report=context.report,
    )
    del rows, sentences  # the largest of the build: gone before the codes are made
    codes, scale, residual = _core.quantise_vectors(means, threads=context.threads)
    return {
        "vectors": means,
        "keyword_codes": codes,
        "keyword_scale": scale,
        "keyword_residual": residual,
    }


def _published(
    inputs: StageInputs, settings: Settings, context: StageContext
) -> tuple[tuple[U64, U32], NDArray[np.float32]]:
    """The keywords' sentences and their vectors; one row for each occurrence where these are counted."""
    words, vectors = inputs["words"], inputs["vectors"]
    indptr, indices = csr(words, "keyword_sentences")
    if "basis" in vectors:
        own = csr(words, "keyword_text_words")
        once = np.ones(len(own[1]), np.uint32)
        sentences = _core.embed_rows(vectors["basis"], *own, once, threads=context.threads)
    else:
        sentences = inputs["sentence_vectors"]["keyword_text_vectors"]
    if settings.of(KetRagSettings).keyword_mean == "sentences":
        return (indptr, indices), sentences
    counts = words["keyword_counts"]
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(counts, dtype=np.uint64)])
    flat = np.repeat(indices, counts)
    return (ends[indptr.astype(np.int64)], np.arange(len(flat), dtype=np.uint32)), sentences[flat]
