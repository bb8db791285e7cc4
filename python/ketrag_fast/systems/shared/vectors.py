"""Vectors of units, chunks and sentences: from a model, or from the space fitted on the corpus.

They are separate stages, so that a build embeds only what its modes need. Sentences are embedded alone, units
and chunks after the title of their document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.systems.shared.row_reuse import Changes, dense_of, sentence_order, sentence_rows
from ketrag_fast.systems.shared.rows import (
    U8,
    U32,
    U64,
    Arrays,
    csr,
    documents_of,
    strings,
    take_rows,
    texts_in_context,
    whole_chunks,
)
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

Packed = tuple[U8, U64]
Part = tuple[Packed | None, U32 | None, Packed]
"""Titles, the document of each text, and the texts."""
_FITTED: Final = 1 << 16
"""The maximum number of documents on which the built-in space is fitted."""
_WALK, _TITLES = "walk_sentence_vectors", "title_sentence_vectors"


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the unit vectors, their 8-bit codes for preselection, and for queries the basis of the space."""
    if context.model is not None:
        return _searchable(_unit_vectors(inputs["units"], context), context)
    words = inputs["words"]
    indptr, indices = csr(words, "unit_words")
    count = len(words["vocabulary_offsets"]) - 1
    fitted = (indptr, indices, words["unit_counts"])
    chosen = _units_to_fit(inputs["units"])
    if chosen is not None:
        _, counts = take_rows((indptr, words["unit_counts"]), chosen)
        fitted = (*take_rows((indptr, indices), chosen), counts)
    basis = _core.fit_embedder(
        *fitted,
        count,
        dims=settings.builtin_dim,
        seed=settings.seed,
        threads=context.threads,
        report=context.report,
    )
    vectors = _core.embed_rows(basis, indptr, indices, words["unit_counts"], threads=context.threads)
    return {"basis": basis, **_searchable(vectors, context)}


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


def _unit_vectors(units: Arrays, context: StageContext) -> NDArray[np.float32]:
    """Return unit vectors from the model, reusing those of unchanged units."""
    titles, owner, texts = (
        strings(units, "document_titles"),
        units["unit_document"],
        texts_in_context(units),
    )
    if context.earlier is None:
        return embed_parts({"units": (titles, owner, texts)}, context)["units"]
    rows = Changes.of(context.earlier, units).units
    before = context.earlier.arrays["unit_vectors"]
    new = np.flatnonzero(rows >= len(before)).astype(np.uint32)
    part: Part = titles, owner[new], _core.take_strings(texts, new)
    return dense_of(before, embed_parts({"units": part}, context)["units"], rows)


def chunks(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the chunk vectors; nothing if the chunks are the units."""
    units, earlier = inputs["units"], context.earlier
    if whole_chunks(units):
        return {}
    if context.model is None:
        return {"chunk_vectors": _fitted_vectors(inputs, "chunk_words", context)}
    if earlier is None or "chunk_vectors" not in earlier.arrays:
        return {"chunk_vectors": _chunk_vectors(inputs.documents, units, context)}
    changes = Changes.of(earlier, units)
    new = _chunk_vectors(inputs.documents.only(changes.fresh), changes.new, context)
    return {"chunk_vectors": dense_of(earlier.arrays["chunk_vectors"], new, changes.chunks)}


def _chunk_vectors(documents: Documents, units: Arrays, context: StageContext) -> NDArray[np.float32]:
    owner = units["chunk_document"]
    texts = _core.slice_strings(documents.packed("text"), owner, units["chunk_bytes"])
    return embed_parts({"chunks": (documents.packed("title"), owner, texts)}, context)["chunks"]


def sentences(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the sentence vectors in the order of `sent_words`: sentences of texts, then each title once.

    In the fitted space sentence vectors are cheap, so they are not stored.
    """
    if context.model is None:
        return {}
    units, earlier = inputs["units"], context.earlier
    if earlier is None:
        return _sentence_vectors(inputs.documents, units, context)
    changes = Changes.of(earlier, units)
    new = _sentence_vectors(inputs.documents.only(changes.fresh), changes.new, context)
    return _join_sentences(changes, units, earlier.arrays, new)


def _sentence_vectors(documents: Documents, units: Arrays, context: StageContext) -> Outputs:
    order, own = sentence_order(units)
    owner = units["chunk_document"][units["sent_chunk"][order]]
    spans = units["sent_bytes"][order[:own]]
    parts: dict[str, Part] = {
        _WALK: (None, None, _core.slice_strings(documents.packed("text"), owner[:own], spans)),
        _TITLES: (None, None, _core.take_strings(documents.packed("title"), owner[own:])),
    }
    return embed_parts(parts, context)


def _join_sentences(changes: Changes, now: Arrays, before: Outputs, new: Outputs) -> Outputs:
    """Merge published and new sentence vectors in the current order."""
    rows = sentence_rows(changes, now).astype(np.int64)
    _, own = sentence_order(now)
    walk, titles, new_walk = len(before[_WALK]), len(before[_TITLES]), len(new[_WALK])
    fresh = rows >= walk + titles
    walked = np.where(fresh, rows - titles, rows)[:own]
    titled = np.where(fresh, rows - walk - new_walk, rows - walk)[own:]
    return {
        _WALK: dense_of(before[_WALK], new[_WALK], walked.astype(np.uint32)),
        _TITLES: dense_of(before[_TITLES], new[_TITLES], titled.astype(np.uint32)),
    }


def _fitted_vectors(inputs: StageInputs, name: str, context: StageContext) -> NDArray[np.float32]:
    """Return vectors in the fitted space, counting each word once."""
    indptr, indices = csr(inputs["words"], name)
    once = np.ones(len(indices), np.uint32)
    return _core.embed_rows(inputs["vectors"]["basis"], indptr, indices, once, threads=context.threads)


def _searchable(units: NDArray[np.float32], context: StageContext) -> dict[str, NDArray[Any]]:
    codes, scale, residual = _core.quantise_vectors(units, threads=context.threads)
    return {"unit_vectors": units, "unit_codes": codes, "unit_scale": scale, "unit_residual": residual}


def embed_parts(parts: Mapping[str, Part], context: StageContext) -> dict[str, NDArray[Any]]:
    """Embed all parts in one pass of the model, so that progress has one total."""
    counts = [len(packed[1]) - 1 for _, _, packed in parts.values()]
    model = context.model
    assert model is not None  # noqa: S101 - the caller looked
    context.report.unit = "tokens"
    chars = sum(len(packed[0]) for _, _, packed in parts.values())
    stream = (text for head, of, packed in parts.values() for text in _texts(head, of, packed))
    every = model.embed(stream, sum(counts), chars, context.report)
    cuts = np.cumsum([0, *counts])
    return {name: every[start:end] for name, (start, end) in zip(parts, pairwise(cuts), strict=True)}


def _texts(titles: Packed | None, owner: U32 | None, packed: Packed) -> Iterator[str]:
    """Yield each text after the title of its document, if any, decoding one at a time."""
    heads = list(_decode(titles)) if titles is not None else []
    for number, text in enumerate(_decode(packed)):
        title = heads[owner[number]] if owner is not None else ""
        yield f"{title}\n{text}" if title else text


def _decode(packed: Packed) -> Iterator[str]:
    blob, offsets = packed
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield blob[start:end].tobytes().decode("utf-8")
