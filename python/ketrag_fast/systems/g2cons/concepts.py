"""Concepts: the most characteristic terms of each chunk, with their chunks, units and vectors (G2ConS, 3)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import InternalError
from ketrag_fast.systems.g2cons.settings import G2ConsSettings
from ketrag_fast.systems.shared.rows import F32, U32, U64, csr, csr_out, lengths, strings, whole_chunks
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the concepts, ordered by the bytes of their terms."""
    own = settings.of(G2ConsSettings)
    units, words = inputs["units"], inputs["words"]
    whole = whole_chunks(units)
    rows, counts = _words_of_chunks(inputs, whole)
    vocabulary = strings(words, "vocabulary")
    concepts, named = _core.concepts(
        *rows,
        counts,
        vocabulary,
        most=own.concepts_per_chunk,
        idf=own.concept_idf,
        min_df=own.concept_min_df,
        max_df_ratio=own.concept_max_df,
        min_chars=own.concept_chars,
        threads=context.threads,
        report=context.report,
    )
    count, known = len(concepts), len(vocabulary[1]) - 1
    in_chunks = named
    if own.concept_chunks == "contained":
        in_chunks = _core.renumber(*rows, known, concepts)
    of_units = (
        in_chunks if whole else _concepts_in_units(inputs, known, concepts, in_chunks, own.concept_chunks)
    )
    vectors = _vectors(inputs, settings, concepts, in_chunks, context)
    codes, scale, residual = _core.quantise_vectors(vectors, threads=context.threads)
    return {
        "concept_word": concepts,
        **csr_out("chunk_concepts", in_chunks),
        **csr_out("concept_units", _core.transpose(*of_units, count, threads=context.threads)),
        "vectors": vectors,
        "concept_codes": codes,
        "concept_scale": scale,
        "concept_residual": residual,
    }


def _words_of_chunks(inputs: StageInputs, whole: bool) -> tuple[tuple[U64, U32], U32]:
    """Return the terms of each chunk with their counts.

    In a split chunk they are counted in its units; a term that a cut divides counts once.
    """
    words = inputs["words"]
    if whole:
        return csr(words, "unit_words"), words["unit_counts"]
    indptr, indices = csr(words, "chunk_words")
    known = len(words["vocabulary_offsets"]) - 1
    unit_indptr, unit_indices = csr(words, "unit_words")
    chunk_of_unit = inputs["units"]["unit_chunk"].astype(np.int64)
    owners = np.repeat(chunk_of_unit, lengths(unit_indptr))
    pairs, place = np.unique(owners * known + unit_indices, return_inverse=True)
    sums = np.bincount(place, words["unit_counts"], len(pairs)).astype(np.uint32)
    owners = np.repeat(np.arange(len(indptr) - 1), lengths(indptr))
    wanted = owners * known + indices
    counts = np.ones(len(wanted), np.uint32)
    if len(pairs):
        at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        found = pairs[at] == wanted
        counts[found] = sums[at[found]]
    return (indptr, indices), counts


def _concepts_in_units(
    inputs: StageInputs, known: int, concepts: U32, in_chunks: tuple[U64, U32], which: str
) -> tuple[U64, U32]:
    """Return the concepts of each unit of a split chunk; with "origin", only those selected for its chunk."""
    indptr, indices = _core.renumber(*csr(inputs["words"], "unit_words"), known, concepts)
    if which == "contained":
        return indptr, indices
    count = max(len(concepts), 1)
    owners = np.repeat(np.arange(len(in_chunks[0]) - 1), lengths(in_chunks[0]))
    named = owners * count + in_chunks[1]
    unit = np.repeat(np.arange(len(indptr) - 1), lengths(indptr))
    own = inputs["units"]["unit_chunk"].astype(np.int64)[unit] * count + indices
    kept = np.isin(own, named)
    ends = np.zeros(len(indptr), np.uint64)
    np.cumsum(np.bincount(unit[kept], minlength=len(indptr) - 1), out=ends[1:])
    return ends, indices[kept]


def _vectors(
    inputs: StageInputs, settings: Settings, concepts: U32, in_chunks: tuple[U64, U32], context: StageContext
) -> F32:
    """Return unit vectors: the mean over all sentences that contain the term, or over its chunks."""
    words, vectors = inputs["words"], inputs["vectors"]
    if settings.of(G2ConsSettings).concept_vectors == "chunks":
        found = inputs["chunk_vectors"].get("chunk_vectors", vectors["unit_vectors"])
        rows = in_chunks
    else:
        known = len(words["vocabulary_offsets"]) - 1
        rows = _core.renumber(*csr(words, "sent_words"), known, concepts)
        found = _sentences(inputs, settings, context)
    if len(found) != len(rows[0]) - 1:
        raise InternalError(f"{len(found)} vectors for {len(rows[0]) - 1} sentences or chunks of concepts")
    turned = _core.transpose(*rows, len(concepts), threads=context.threads)
    return _core.keyword_means(*turned, found, unit=True, threads=context.threads, report=context.report)


def _sentences(inputs: StageInputs, settings: Settings, context: StageContext) -> F32:
    vectors = inputs["vectors"]
    if "basis" in vectors:
        indptr, indices = csr(inputs["words"], "sent_words")
        once = np.ones(len(indices), np.uint32)
        return _core.embed_rows(vectors["basis"], indptr, indices, once, threads=context.threads)
    own = inputs["sentence_vectors"]
    found: F32 = np.concatenate([own["walk_sentence_vectors"], own["title_sentence_vectors"]])
    return found
