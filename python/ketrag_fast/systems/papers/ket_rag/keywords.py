"""Keyword vectors: the mean of the vectors of a keyword's sentences (KET-RAG, Algorithm 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import InternalError
from ketrag_fast.systems.papers.ket_rag import KetRules
from ketrag_fast.systems.shared.row_reuse import Changes, dense_of, sentence_rows
from ketrag_fast.systems.shared.rows import U32, U64, csr, select_rows, strings
from ketrag_fast.systems.shared.vectors import decoded_sentences
from ketrag_fast.systems.spec.stage import Earlier, Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the keyword vectors. In the fitted space the kernel computes sentence vectors on the fly."""
    words, vectors = inputs["words"], inputs["vectors"]
    threads, report = context.threads, context.report
    if settings.of(KetRules).words == "published":
        rows, sentences = _reference_means(inputs, context)
        means = _core.keyword_means(*rows, sentences, threads=threads, report=report)
        del rows, sentences  # the largest array of a build: freed before the codes are computed
    else:
        own = csr(words, "sent_words")
        turned = _core.transpose(*own, len(words["vocabulary_offsets"]) - 1)
        if "basis" in vectors:
            means = _core.keyword_means_by_words(
                vectors["basis"], own, turned, threads=threads, report=report
            )
        else:
            means = _model_means(inputs, turned, context)
        del turned
    codes, scale, residual = _core.quantise_vectors(means, threads=context.threads)
    return {
        "vectors": means,
        "keyword_codes": codes,
        "keyword_scale": scale,
        "keyword_residual": residual,
    }


def _model_means(inputs: StageInputs, turned: tuple[U64, U32], context: StageContext) -> NDArray[np.float32]:
    """Return the keyword vectors, reusing those of keywords whose sentences did not change."""
    changed = _changed_keywords(inputs, context.earlier) if context.earlier is not None else None
    if context.earlier is None or changed is None:
        sentences = _sentence_vectors(inputs)
        return _core.keyword_means(*turned, sentences, threads=context.threads, report=context.report)
    words, rows = changed
    indptr, indices = select_rows(turned, words)
    used, own = np.unique(indices, return_inverse=True)
    some = decoded_sentences(inputs, used)
    means = _core.keyword_means(
        indptr, own.astype(np.uint32), some, threads=context.threads, report=context.report
    )
    return dense_of(context.earlier.arrays["vectors"], means, rows)


def _changed_keywords(inputs: StageInputs, earlier: Earlier) -> tuple[NDArray[np.int64], U32] | None:
    """Return the keywords whose sentences changed, and the rows of all: reused ones, then these.

    Returns None if reused sentences come in another order, because the sums depend on it.
    """
    words, before = inputs["words"], earlier.needs["words"]
    changes = Changes.of(earlier, inputs["units"])
    rows = sentence_rows(changes, inputs["units"])
    count = len(before["sent_words_indptr"]) - 1
    kept = rows[rows < count].astype(np.int64)
    if np.any(np.diff(kept) < 0):
        return None
    size = len(words["vocabulary_offsets"]) - 1
    old = strings(before, "vocabulary")
    every = np.ones(len(old[1]) - 1, np.uint8)
    _, first, second = _core.merge_strings(old, every, strings(words, "vocabulary"))
    place = np.full(len(first) + len(second), -1, np.int64)
    place[first] = np.arange(len(first))
    was = place[second]  # previous number of each keyword, or -1
    now = np.full(len(first), -1, np.int64)
    now[was[was >= 0]] = np.flatnonzero(was >= 0)
    gone = np.setdiff1d(np.arange(count), kept)
    lost = now[select_rows(csr(before, "sent_words"), gone)[1]]
    found = select_rows(csr(words, "sent_words"), np.flatnonzero(rows >= count))[1]
    mask = was < 0
    mask[found] = True
    mask[lost[lost >= 0]] = True
    out = was.copy()
    out[mask] = len(first) + np.arange(int(mask.sum()))
    if len(out) != size:
        raise InternalError(f"{len(out)} keywords; {size} are expected")
    return np.flatnonzero(mask), out.astype(np.uint32)


def _sentence_vectors(inputs: StageInputs) -> NDArray[np.float32]:
    """Return a model's sentence vectors in the order of `sent_words`."""
    sentences = decoded_sentences(inputs)
    count = len(inputs["words"]["sent_words_indptr"]) - 1
    if len(sentences) != count:
        raise InternalError(f"{len(sentences)} sentence vectors for {count} sentences")
    return sentences


def _reference_means(
    inputs: StageInputs, context: StageContext
) -> tuple[tuple[U64, U32], NDArray[np.float32]]:
    """Return the occurrences of each keyword, and the vector of the sentence of each."""
    words, vectors = inputs["reference_words"], inputs["vectors"]
    indptr, indices = csr(words, "keyword_sentences")
    if "basis" in vectors:
        own = csr(words, "keyword_text_words")
        once = np.ones(len(own[1]), np.uint32)
        sentences = _core.embed_rows(vectors["basis"], *own, once, threads=context.threads)
    else:
        sentences = inputs["reference_sentences"]["keyword_text_vectors"]
    counts = words["keyword_counts"]
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(counts, dtype=np.uint64)])
    flat = np.repeat(indices, counts)
    return (ends[indptr.astype(np.int64)], np.arange(len(flat), dtype=np.uint32)), sentences[flat]
