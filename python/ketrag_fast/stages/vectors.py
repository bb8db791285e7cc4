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
        return _from_model(inputs, context)
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
    if "chunk_words_indptr" in words:
        indptr, indices = csr(words, "chunk_words")
        once = np.ones(len(indices), np.uint32)
        outputs["chunk_vectors"] = _core.embed_rows(basis, indptr, indices, once, threads=context.threads)
    return outputs


def _searchable(units: NDArray[np.float32], context: StageContext) -> dict[str, NDArray[Any]]:
    codes, scale, residual = _core.quantise_vectors(units, threads=context.threads)
    return {"unit_vectors": units, "unit_codes": codes, "unit_scale": scale, "unit_residual": residual}


def _from_model(inputs: StageInputs, context: StageContext) -> Outputs:
    """One pass of the model over everything, so that progress has one total (specs 0.9: the title precedes).

    A sentence's vector is that of the sentence alone; a title is a sentence of its own, once in its
    document, for keywords. The order is that of `sent_words`: all sentences, then the titles.
    """
    units, words = inputs["units"], inputs["words"]
    titles, texts = strings(units, "document_titles"), inputs.documents.packed("text")
    own = np.flatnonzero(units["sent_title"] == 0)
    owner = units["chunk_document"][units["sent_chunk"]]
    titled = np.unique(owner[units["sent_title"] != 0])
    parts = [
        (titles, units["unit_document"], strings(units, "unit_texts")),
        (None, None, _core.slice_strings(texts, owner[own], units["sent_bytes"][own])),
        (None, None, _core.take_strings(titles, titled)),
    ]
    if "chunk_words_indptr" in words:
        chunks = _core.slice_strings(texts, units["chunk_document"], units["chunk_bytes"])
        parts.append((titles, units["chunk_document"], chunks))
    counts = [len(packed[1]) - 1 for _, _, packed in parts]
    model = context.model
    assert model is not None  # noqa: S101 - the caller looked
    context.report.unit = "tokens"
    chars = sum(len(packed[0]) for _, _, packed in parts)
    stream = (text for head, of, packed in parts for text in _texts(head, of, packed))
    every = model.embed(stream, sum(counts), chars, context.report)
    cuts = np.cumsum([0, *counts])
    rows = [every[start:end] for start, end in pairwise(cuts)]
    outputs = {
        **_searchable(rows[0], context),
        "walk_sentence_vectors": rows[1],
        "title_sentence_vectors": rows[2],
    }
    if len(rows) > 3:
        outputs["chunk_vectors"] = rows[3]
    return outputs


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
    version=1,
    needs=("documents", "units", "words"),
    settings=("embedder", "builtin_dim", "seed"),
    run=run,
    unit="steps",
)
