"""Concepts (terms that characterise chunks), their graph, and the core chunks (G2ConS, 3 and 4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.shared import ExtractionSettings
from ketrag_fast.errors import InternalError
from ketrag_fast.systems.papers.g2cons import G2ConsSettings
from ketrag_fast.systems.shared.rows import F32, U32, U64, csr, csr_out, lengths, strings, whole_chunks
from ketrag_fast.systems.shared.vectors import decoded_sentences
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

PER_CHUNK: Final = 50
"""Number of terms of a chunk that become concepts, by TF-IDF, as in the paper."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the concepts, ordered by the bytes of their terms."""
    units, words = inputs["units"], inputs["words"]
    whole = whole_chunks(units)
    rows, counts = _words_of_chunks(inputs, whole)
    vocabulary = strings(words, "vocabulary")
    concepts, _ = _core.concepts(
        *rows,
        counts,
        vocabulary,
        most=PER_CHUNK,
        threads=context.threads,
        report=context.report,
    )
    count, known = len(concepts), len(vocabulary[1]) - 1
    in_chunks = _core.renumber(*rows, known, concepts)
    of_units = in_chunks if whole else _core.renumber(*csr(words, "unit_words"), known, concepts)
    vectors = _vectors(inputs, concepts, context)
    codes, scale, residual = _core.quantise_vectors(vectors, threads=context.threads)
    return {
        "concept_word": concepts,
        **csr_out("chunk_concepts", in_chunks),
        **csr_out("concept_units", _core.transpose(*of_units, count)),
        "vectors": vectors,
        "concept_codes": codes,
        "concept_scale": scale,
        "concept_residual": residual,
    }


def _words_of_chunks(inputs: StageInputs, whole: bool) -> tuple[tuple[U64, U32], U32]:
    """Return the terms of each chunk with their counts.

    In a split chunk, terms are counted in its units; a term that is divided by a cut counts once.
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


def _vectors(inputs: StageInputs, concepts: U32, context: StageContext) -> F32:
    """Return unit vectors: the mean over all sentences that contain the term."""
    words = inputs["words"]
    rows = _core.renumber(*csr(words, "sent_words"), len(words["vocabulary_offsets"]) - 1, concepts)
    found = _sentences(inputs, context)
    if len(found) != len(rows[0]) - 1:
        raise InternalError(f"{len(found)} vectors for {len(rows[0]) - 1} sentences of concepts")
    turned = _core.transpose(*rows, len(concepts))
    return _core.keyword_means(*turned, found, unit=True, threads=context.threads, report=context.report)


def _sentences(inputs: StageInputs, context: StageContext) -> F32:
    vectors = inputs["vectors"]
    if "basis" in vectors:
        indptr, indices = csr(inputs["words"], "sent_words")
        once = np.ones(len(indices), np.uint32)
        return _core.embed_rows(vectors["basis"], indptr, indices, once, threads=context.threads)
    return decoded_sentences(inputs)


def link_concepts(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the concept graph: edges between concepts that share enough chunks and have close vectors."""
    own = settings.of(G2ConsSettings)
    concepts = inputs["concepts"]
    rows = csr(concepts, "chunk_concepts")
    edges, shared, cosines, weights, threshold = _core.concept_graph(
        *rows,
        concepts["vectors"],
        theta_co=own.theta_co,
        theta_sem=own.theta_sem,
        threads=context.threads,
        report=context.report,
    )
    return {
        **csr_out("edges", edges),
        "edge_shared": shared,
        "edge_cosine": cosines,
        "edge_weight": weights,
        "threshold": np.array([threshold]),
    }


def select_core(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the core chunks, most important first; the reader processes them in this order."""
    concepts, graph = inputs["concepts"], inputs["concept_graph"]
    edges = csr(graph, "edges")
    ranks = _core.pagerank(*edges, graph["edge_weight"], threads=context.threads, report=context.report)
    chunks = len(inputs["units"]["chunk_document"])
    count = _core.core_count(chunks, settings.of(ExtractionSettings).core_ratio)
    rows = csr(concepts, "chunk_concepts")
    chosen = _core.select_by_concepts(*rows, ranks, count, report=context.report)
    return {"core": chosen, "concept_rank": ranks}
