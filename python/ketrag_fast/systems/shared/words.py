"""The keyword vocabulary and the text-keyword graph (KET-RAG, Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.nltk_data import digest, load
from ketrag_fast.systems.shared.reference_words import cooccurrence, keywords
from ketrag_fast.systems.shared.row_reuse import (
    Changes,
    columns_in_use,
    dense_of,
    rows_of,
    sentence_order,
    sentence_rows,
)
from ketrag_fast.systems.shared.rows import (
    U32,
    U64,
    Arrays,
    csr,
    csr_out,
    strings,
    strings_out,
    take_rows,
    whole_chunks,
    word_rows,
)
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Earlier, Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the vocabulary and its graphs, with sentences in `sentence_order`."""
    units = inputs["units"]
    if context.earlier is not None and settings.words != "published":
        return _update_words(inputs, context.earlier, settings, context)
    found = _find_words(inputs.documents, units, settings, context)
    published: dict[str, NDArray[Any]] = {}
    if settings.words == "published":
        published = _reference_words(inputs, settings, context)
        texts = strings(published, "keyword_texts")
        languages = np.unique(found["chunk_language"]).tolist()
        known = word_rows(texts, found["words"], settings.language, languages, context.threads)[:2]
        published |= csr_out("keyword_text_words", known)
    words = found["words"]
    count = len(words[1]) - 1
    unit_words = found["unit_words"]
    sent_words = take_rows(found["sent_words"], sentence_order(units)[0])
    return {
        **strings_out("vocabulary", words),
        **csr_out("unit_words", unit_words),
        "unit_counts": found["unit_counts"],
        **csr_out("word_units", _core.transpose(*unit_words, count, threads=context.threads)),
        **csr_out("sent_words", sent_words),
        # If chunks are units, their words and vectors are stored only once.
        **({} if whole_chunks(units) else csr_out("chunk_words", found["chunk_words"])),
        **_languages(found["chunk_language"]),
        **published,
    }


def _find_words(
    documents: Documents, units: Arrays, settings: Settings, context: StageContext
) -> _core._Vocabulary:
    return _core.vocabulary(
        documents.packed("title"),
        documents.packed("text"),
        units["chunk_document"],
        units["chunk_bytes"],
        units["unit_chunk"],
        units["unit_bytes"],
        units["sent_chunk"],
        units["sent_bytes"],
        units["sent_title"],
        settings.language,
        context.threads,
        report=context.report,
    )


def _update_words(
    inputs: StageInputs, earlier: Earlier, settings: Settings, context: StageContext
) -> Outputs:
    """Update the vocabulary: read the new documents, and renumber the words of the others."""
    units, before = inputs["units"], earlier.arrays
    changes = Changes.of(earlier, units)
    found = _find_words(inputs.documents.only(changes.fresh), changes.new, settings, context)
    used = columns_in_use(before, "unit_words", "word_units", changes.units)
    words, *numbers = _core.merge_strings(strings(before, "vocabulary"), used, found["words"])
    both = numbers[0], numbers[1]
    unit_words = rows_of(csr(before, "unit_words"), found["unit_words"], changes.units, both)
    counts = (
        (before["unit_words_indptr"], before["unit_counts"]),
        (found["unit_words"][0], found["unit_counts"]),
    )
    new_sentences = take_rows(found["sent_words"], sentence_order(changes.new)[0])
    sentences = sentence_rows(changes, units)
    made = {
        **strings_out("vocabulary", words),
        **csr_out("unit_words", unit_words),
        "unit_counts": rows_of(*counts, changes.units)[1],
        **csr_out("word_units", _core.transpose(*unit_words, len(words[1]) - 1, threads=context.threads)),
        **csr_out("sent_words", rows_of(csr(before, "sent_words"), new_sentences, sentences, both)),
    }
    if not whole_chunks(units):
        made |= csr_out("chunk_words", _chunk_words(earlier, changes, found, both))
    old = before.get("chunk_language", np.zeros(len(changes.before["chunk_document"]), np.uint8))
    new = found["chunk_language"]
    new = new if len(new) else np.zeros(len(changes.new["chunk_document"]), np.uint8)
    return made | _languages(dense_of(old, new, changes.chunks))


def _languages(chunks: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return the language of each chunk, and each language once; nothing if all are English."""
    if not chunks.any():
        return {}
    return {"languages": np.unique(chunks), "chunk_language": chunks}


def _chunk_words(
    earlier: Earlier, changes: Changes, found: _core._Vocabulary, numbers: tuple[U32, U32]
) -> tuple[U64, U32]:
    """Return the words of each chunk; published or new documents may have units as chunks."""
    whole = whole_chunks(earlier.needs["units"])
    first = csr(earlier.arrays, "unit_words" if whole else "chunk_words")
    second = found["unit_words"] if whole_chunks(changes.new) else found["chunk_words"]
    return rows_of(first, second, changes.chunks, numbers)


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return a hash of NLTK's data, because their content may change while the folder stays the same."""
    return digest(settings.nltk_data) if settings.words == "published" else "own"


def _reference_words(
    inputs: StageInputs, settings: Settings, context: StageContext
) -> dict[str, NDArray[Any]]:
    """Return the arrays with the tokenisation of the reference implementation, titles before texts."""
    units = inputs["units"]
    data = load(settings.nltk_data)
    titles = unpack(*strings(units, "document_titles"))
    texts = _prepend_titles(titles, units["unit_document"], unpack(*strings(units, "unit_texts")))
    joined = texts
    if settings.core_unit == "chunk" and settings.split_level:
        owner, span = units["chunk_document"], units["chunk_bytes"]
        cut = _core.slice_strings(inputs.documents.packed("text"), owner, span)
        joined = _prepend_titles(titles, owner, unpack(*cut))
    return {**cooccurrence(data, joined, context), **keywords(data, texts, context)}


def _prepend_titles(titles: list[str], owner: NDArray[np.uint32], texts: list[str]) -> list[str]:
    heads = (titles[document] for document in owner.tolist())
    return [f"{head}\n{text}" if head else text for head, text in zip(heads, texts, strict=True)]
