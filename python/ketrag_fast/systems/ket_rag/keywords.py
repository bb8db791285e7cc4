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
    """Sentence vectors of the fitted space are only needed here: the kernel makes them on its way."""
    words, vectors = inputs["words"], inputs["vectors"]
    unit = settings.of(KetRagSettings).keyword_norm == "unit"
    threads, report = context.threads, context.report
    if settings.words == "published":
        rows, sentences = _published(inputs, settings, context)
        means = _core.keyword_means(*rows, sentences, unit=unit, threads=threads, report=report)
        del rows, sentences  # the largest of the build: gone before the codes are made
    else:
        own = csr(words, "sent_words")
        turned = _core.transpose(*own, len(words["vocabulary_offsets"]) - 1, threads=threads)
        if "basis" in vectors:
            means = _core.keyword_means_by_words(
                vectors["basis"], own, turned, unit=unit, threads=threads, report=report
            )
        else:
            means = _core.keyword_means(
                *turned, _of_sentences(inputs), unit=unit, threads=threads, report=report
            )
        del turned
    codes, scale, residual = _core.quantise_vectors(means, threads=context.threads)
    return {
        "vectors": means,
        "keyword_codes": codes,
        "keyword_scale": scale,
        "keyword_residual": residual,
    }


def _of_sentences(inputs: StageInputs) -> NDArray[np.float32]:
    """A model's vectors of the sentences, in the order of `sent_words`."""
    own = inputs["sentence_vectors"]
    sentences = np.concatenate([own["walk_sentence_vectors"], own["title_sentence_vectors"]])
    count = len(inputs["words"]["sent_words_indptr"]) - 1
    if len(sentences) != count:
        raise InternalError(f"{len(sentences)} sentence vectors for {count} sentences")
    return sentences


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
