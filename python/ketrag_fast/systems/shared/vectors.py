"""Vectors of units, chunks and sentences: from a model, or from the space fitted on the corpus.

They are separate stages, so that a build embeds only what its modes need. Units and chunks are embedded after
the title of their document. If the model returns vectors of spans, the vector of a sentence comes from the
pass of its unit; else sentences are embedded alone. A model's vectors are packed as they are computed: those
of units in the setting `vector_format`, those of sentences as signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.storage.vector_codes import (
    SIGNS,
    Packing,
    Rows,
    StoredVectors,
    are_placeholders,
    columns,
    unpack_signs,
)
from ketrag_fast.systems.shared.published_vectors import (
    SENTENCES,
    TITLES,
    Packed,
    embedded_units,
    spans_of,
    texts_after_titles,
    title_texts,
)
from ketrag_fast.systems.shared.row_reuse import (
    Changes,
    dense_of,
    sentence_rows,
)
from ketrag_fast.systems.shared.rows import (
    F32,
    U32,
    Arrays,
    csr,
    documents_of,
    select_rows,
    sentence_order,
    strings,
    texts_in_context,
    whole_chunks,
)
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Outputs, PublishedVectors, StageContext, StageInputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.embedders.cache import Finder

DIMENSION: Final = 256
"""Dimension of the built-in vectors.

Recall@5 of `text` on musique-dev, 2wiki-dev, cacm and cosqa-dev is 36.5, 34.2, 21.3 and 26.3 with 128; 48.2,
42.3, 21.5 and 34.7 with 256; 53.8, 48.4, 21.6 and 35.0 with 512, in 1.9 times the bytes and 1.7 to 2 times
the time of the build.
"""
_FITTED: Final = 1 << 16
"""Maximum number of documents for fitting the built-in vector space."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the unit vectors in their format, and for queries the basis of the fitted space."""
    if context.model is not None:
        packing = Packing(settings.vector_format, context.model.dimension)
        rows = _unit_rows(inputs["units"], packing, context)
        return {"dimension": np.array([packing.dimension], np.uint32), **_searchable(rows, context)}
    words = inputs["words"]
    indptr, indices = csr(words, "unit_words")
    count = len(words["vocabulary_offsets"]) - 1
    fitted = (indptr, indices, words["unit_counts"])
    chosen = _units_to_fit(inputs["units"])
    if chosen is not None:
        _, counts = select_rows((indptr, words["unit_counts"]), chosen)
        fitted = (*select_rows((indptr, indices), chosen), counts)
    basis = _core.fit_embedder(
        *fitted,
        count,
        dims=DIMENSION,
        seed=settings.seed,
        threads=context.threads,
        report=context.report,
    )
    vectors = _core.embed_rows(basis, indptr, indices, words["unit_counts"], threads=context.threads)
    return {"basis": basis, "unit_vectors": vectors, **_byte_codes(vectors, context)}


def _units_to_fit(units: Arrays) -> NDArray[np.int64] | None:
    """Return the units of the documents on which the space is fitted; None for all.

    Which documents these are depends on their ids alone, so that a change of a large corpus rarely moves the
    vectors of other documents.
    """
    if int(units["document_count"][0]) <= _FITTED:
        return None
    owner, first = documents_of(units)
    ids = _core.take_strings(strings(units, "document_ids"), first.astype(np.uint32))
    chosen = np.zeros(len(first), np.bool_)
    chosen[_core.smallest_hashes(ids, _FITTED)] = True
    return np.flatnonzero(chosen[owner[units["unit_document"]]])


def _unit_rows(units: Arrays, packing: Packing, context: StageContext) -> Rows:
    """Return packed unit vectors from the model, reusing those of unchanged units."""
    if context.earlier is None:
        return _new_unit_rows(units, packing, context)
    changes = Changes.of(context.earlier, units)
    before = StoredVectors.of(context.earlier.arrays).packed(packing)
    new = _new_unit_rows(_of_new_documents(changes, units), packing, context)
    return dense_of(before, new, changes.units)


def _new_unit_rows(units: Arrays, packing: Packing, context: StageContext) -> Rows:
    if _pools(context):
        return _with_spans(units, packing, context)[0]
    texts = texts_in_context(units)
    known = _published(context)
    published = None if known is None else known.units(packing.format)
    return _embed(
        (strings(units, "document_titles"), units["unit_document"], texts), packing, published, context
    )


def chunks(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the chunk vectors; nothing if the chunks are the units."""
    units, earlier = inputs["units"], context.earlier
    if whole_chunks(units):
        return {}
    if context.model is None:
        return {"chunk_vectors": _fitted_vectors(inputs, "chunk_words", context)}
    packing = Packing(settings.vector_format, context.model.dimension)
    if earlier is None:
        return columns(_chunk_rows(inputs.documents, units, packing, context), "chunk")
    changes = Changes.of(earlier, units)
    before = chunk_vectors(earlier.arrays, earlier.needs["vectors"])
    if before is None:
        return columns(_chunk_rows(inputs.documents, units, packing, context), "chunk")
    new = _chunk_rows(inputs.documents.only(changes.fresh), changes.new, packing, context)
    return columns(dense_of(before.packed(packing), new, changes.chunks), "chunk")


def chunk_vectors(chunks: Arrays, vectors: Arrays) -> StoredVectors | None:
    """Return the vectors of chunks that are not units; None if every chunk is one."""
    if not chunks:
        return None
    dimension = int(vectors["dimension"][0]) if "dimension" in vectors else None
    return StoredVectors.of(chunks, "chunk", dimension)


def _chunk_rows(documents: Documents, units: Arrays, packing: Packing, context: StageContext) -> Rows:
    owner = units["chunk_document"]
    texts = _core.slice_strings(documents.packed("text"), owner, units["chunk_bytes"])
    stream = texts_after_titles(documents.packed("title"), owner, texts)
    context.report.unit = "tokens"
    # These vectors also stay in the tables, because no published array has chunk texts to find rows by.
    vectors = _model(context).embed(stream, len(owner), len(texts[0]), context.report)
    return packing.pack(vectors, context.threads)


def sentences(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the signs of the vectors of sentences that are not titles, in the order of `sent_words`.

    In the fitted space sentence vectors are cheap, so they are not stored.
    """
    if context.model is None:
        return {}
    units, earlier = inputs["units"], context.earlier
    if earlier is None:
        return {SIGNS: _signs(inputs.documents, units, settings, context)}
    changes = Changes.of(earlier, units)
    if _pools(context):
        new = _signs(inputs.documents, _of_new_documents(changes, units), settings, context)
    else:
        new = _signs(inputs.documents.only(changes.fresh), changes.new, settings, context)
    rows = sentence_rows(changes, units)[: sentence_order(units)[1]]
    before = earlier.arrays[SIGNS]
    published = len(sentence_order(changes.before)[0])
    rows = np.where(rows >= published, rows - (published - len(before)), rows)
    return {SIGNS: dense_of(before, new, rows.astype(np.uint32))}


def encode_new(
    documents: Documents, units: Arrays, settings: Settings, context: StageContext
) -> dict[str, NDArray[Any]]:
    """Return the rows of new documents in the stages "vectors" and "sentence_vectors", by stage and array."""
    packing = Packing(settings.vector_format, _model(context).dimension)
    arrays = _searchable(_new_unit_rows(units, packing, context), context)
    found = {f"vectors.{name}": array for name, array in arrays.items()}
    return {**found, f"{SENTENCES}.{SIGNS}": _signs(documents, units, settings, context)}


def titles(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the signs of the vectors of titles, one for each document that has one."""
    if context.model is None:
        return {}
    signs = Packing(SIGNS, context.model.dimension)
    published = None if context.published is None else context.published.titles
    return {SIGNS: _embed((None, None, title_texts(inputs["units"])), signs, published, context)}


def decoded_sentences(inputs: StageInputs, rows: NDArray[Any] | None = None) -> F32:
    """Return a model's vectors of sentences and titles in the order of `sent_words`, all or some rows."""
    dimension = int(inputs["vectors"]["dimension"][0])
    own, titles = (inputs[stage][SIGNS] for stage in (SENTENCES, TITLES))
    signs = np.concatenate([own, titles]) if rows is None else dense_of(own, titles, rows)
    return unpack_signs(signs, dimension)


def completeness(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return whether vectors may be placeholders, as part of the stage's fingerprint."""
    return "" if context.model is None else context.model.variant


def way(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return how sentences are encoded, as part of the stage's fingerprint."""
    return "" if context.model is None else way_of(context.model, context.model.variant)


def way_of(model: VectorSource, variant: str) -> str:
    """Return how a model encodes sentences, given the variant of its vectors."""
    return " ".join(filter(None, ("pooled" if model.pools_spans else "", variant)))


def count_placeholders(encoded: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of new passages, from `encode_new`, whose vector is a placeholder."""
    prefix = "vectors."
    arrays = {name[len(prefix) :]: array for name, array in encoded.items() if name.startswith(prefix)}
    return int(StoredVectors.of(arrays, dimension=1).placeholders().sum())


def passages_without_vectors(units: Arrays, vectors: Arrays, sentences: Arrays) -> NDArray[np.bool_]:
    """Return which passages have a placeholder in place of their vector or of that of a sentence."""
    found = StoredVectors.of(vectors).placeholders()
    if SIGNS in sentences:
        order, own = sentence_order(units)
        found[units["sent_unit"][order[:own]][are_placeholders(sentences[SIGNS])]] = True
    return found


def _pools(context: StageContext) -> bool:
    return context.model is not None and context.model.pools_spans


def _of_new_documents(changes: Changes, units: Arrays) -> Arrays:
    """Return the arrays of the new documents, with the texts of their units and their titles."""
    count = len(changes.before["unit_bytes"])
    fresh = np.flatnonzero(changes.units >= count).astype(np.uint32)
    of_documents = np.flatnonzero(changes.row[documents_of(units)[0]] < 0).astype(np.uint32)
    out: dict[str, NDArray[Any]] = dict(changes.new)
    for name, rows in (("unit_texts", fresh), ("unit_before", fresh), ("document_titles", of_documents)):
        out[f"{name}_blob"], out[f"{name}_offsets"] = _core.take_strings(strings(units, name), rows)
    return out


def _with_spans(units: Arrays, packing: Packing, context: StageContext) -> tuple[Rows, Rows]:
    """Return packed rows of units and of their sentences (`spans_of`) from one encoder pass."""
    spans, known = spans_of(units), _published(context)
    context.report.unit = "tokens"
    chars = len(texts_in_context(units)[0])
    counts = (len(units["unit_document"]), len(spans.span), chars)
    return _model(context).embed_spans(
        zip(embedded_units(units), spans.rows(), strict=True),
        (packing, Packing(SIGNS, packing.dimension)),
        counts,
        context.report,
        None if known is None else (known.units(packing.format), known.spans),
    )


def _signs(documents: Documents, units: Arrays, settings: Settings, context: StageContext) -> Rows:
    dimension = _model(context).dimension
    signs = Packing(SIGNS, dimension)
    if _pools(context):
        found = _with_spans(units, Packing(settings.vector_format, dimension), context)[1]
        rows = np.empty_like(found)
        rows[spans_of(units).sentence] = found
        return rows
    order, own = sentence_order(units)
    known = _published(context)
    published = None if known is None else known.sentences
    owner = units["chunk_document"][units["sent_chunk"][order[:own]]]
    texts = _core.slice_strings(documents.packed("text"), owner, units["sent_bytes"][order[:own]])
    return _embed((None, None, texts), signs, published, context)


def _fitted_vectors(inputs: StageInputs, name: str, context: StageContext) -> NDArray[np.float32]:
    """Return vectors in the fitted space, counting each word once."""
    indptr, indices = csr(inputs["words"], name)
    once = np.ones(len(indices), np.uint32)
    return _core.embed_rows(inputs["vectors"]["basis"], indptr, indices, once, threads=context.threads)


def _searchable(rows: Rows, context: StageContext) -> dict[str, NDArray[Any]]:
    """Return the arrays of unit vectors; f32 vectors get 8-bit codes that preselect the rows of a search."""
    arrays = columns(rows, "unit")
    if "unit_vectors" in arrays:
        arrays.update(_byte_codes(arrays["unit_vectors"], context))
    return arrays


def _byte_codes(vectors: NDArray[np.float32], context: StageContext) -> dict[str, NDArray[Any]]:
    codes, scale, residual = _core.quantise_vectors(vectors, threads=context.threads)
    return {"unit_codes": codes, "unit_scale": scale, "unit_residual": residual}


def _model(context: StageContext) -> VectorSource:
    assert context.model is not None  # noqa: S101 - the caller looked
    return context.model


def _published(context: StageContext) -> PublishedVectors | None:
    """Return the published vectors of this model; None if rows are reused by document."""
    return None if context.earlier is not None else context.published


def _embed(
    part: tuple[Packed | None, U32 | None, Packed],
    packing: Packing,
    published: Finder | None,
    context: StageContext,
) -> Rows:
    """Return packed vectors of texts: titles, the document of each text, and the texts."""
    titles, owner, packed = part
    context.report.unit = "tokens"
    counts = (len(packed[1]) - 1, len(packed[0]))
    stream = texts_after_titles(titles, owner, packed)
    return _model(context).embed_packed(stream, packing, counts, context.report, published)
