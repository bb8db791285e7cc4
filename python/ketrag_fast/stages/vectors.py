"""Vectors of units, chunks and sentences: from a model, or from the space fitted on the corpus itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import U8, U64, csr, strings

Packed = tuple[U8, U64]


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """`basis` makes a question's vector; the codes are an eight-bit copy that preselects."""
    if context.model is not None:
        return _from_model(inputs, settings, context)
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
    outputs: dict[str, NDArray[Any]] = {"basis": basis, **_searchable(units, context)}
    if "keyword_texts_offsets" in words:
        indptr, indices = csr(words, "keyword_text_words")
        once = np.ones(len(indices), np.uint32)
        outputs["keyword_text_vectors"] = _core.embed_rows(
            basis, indptr, indices, once, threads=context.threads
        )
    if settings.core_unit == "chunk" and "chunk_words_indptr" in words:
        indptr, indices = csr(words, "chunk_words")
        once = np.ones(len(indices), np.uint32)
        outputs["chunk_vectors"] = _core.embed_rows(basis, indptr, indices, once, threads=context.threads)
    return outputs


def _searchable(units: NDArray[np.float32], context: StageContext) -> dict[str, NDArray[Any]]:
    codes, scale, residual = _core.quantise_vectors(units, threads=context.threads)
    return {"unit_vectors": units, "unit_codes": codes, "unit_scale": scale, "unit_residual": residual}


def _from_model(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """One pass of the model over everything, so that progress has one total (specs 0.9: the title precedes).

    A sentence's vector is that of the sentence alone; a title is a sentence of its own, once in its
    document, for keywords. The order is that of `sent_words`: all sentences, then the titles. With the
    published words only their own sentences are embedded, as published; the walk then goes by words alone.
    """
    units, words = inputs["units"], inputs["words"]
    titles, texts = strings(units, "document_titles"), inputs.documents.packed("text")
    own = np.flatnonzero(units["sent_title"] == 0)
    owner = units["chunk_document"][units["sent_chunk"]]
    titled = np.unique(owner[units["sent_title"] != 0])
    parts: dict[str, tuple[Packed | None, NDArray[np.uint32] | None, Packed]] = {
        "unit_vectors": (titles, units["unit_document"], strings(units, "unit_texts"))
    }
    if "keyword_texts_offsets" in words:
        parts["keyword_text_vectors"] = (None, None, strings(words, "keyword_texts"))
    else:
        sentences = _core.slice_strings(texts, owner[own], units["sent_bytes"][own])
        parts["walk_sentence_vectors"] = (None, None, sentences)
        parts["title_sentence_vectors"] = (None, None, _core.take_strings(titles, titled))
    if settings.core_unit == "chunk" and "chunk_words_indptr" in words:
        chunks = _core.slice_strings(texts, units["chunk_document"], units["chunk_bytes"])
        parts["chunk_vectors"] = (titles, units["chunk_document"], chunks)
    counts = [len(packed[1]) - 1 for _, _, packed in parts.values()]
    model = context.model
    assert model is not None  # noqa: S101 - the caller looked
    context.report.unit = "tokens"
    chars = sum(len(packed[0]) for _, _, packed in parts.values())
    stream = (text for head, of, packed in parts.values() for text in _texts(head, of, packed))
    every = model.embed(stream, sum(counts), chars, context.report)
    cuts = np.cumsum([0, *counts])
    rows = {name: every[start:end] for name, (start, end) in zip(parts, pairwise(cuts), strict=True)}
    return {**rows, **_searchable(rows["unit_vectors"], context)}


def _texts(titles: Packed | None, owner: NDArray[np.uint32] | None, packed: Packed) -> Iterator[str]:
    """Each text, after its document's title where there is one; decoded one at a time."""
    heads = list(_decoded(titles)) if titles is not None else []
    for number, text in enumerate(_decoded(packed)):
        title = heads[owner[number]] if owner is not None else ""
        yield f"{title}\n{text}" if title else text


def _decoded(packed: Packed) -> Iterator[str]:
    blob, offsets = packed
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield blob[start:end].tobytes().decode("utf-8")


STAGE = Stage(
    "vectors",
    version=2,
    needs=("documents", "units", "words"),
    settings=("embedder", "builtin_dim", "seed", "core_unit"),
    run=run,
    unit="steps",
)
