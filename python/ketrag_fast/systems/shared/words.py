"""The keyword vocabulary and the text-keyword graph (KET-RAG, Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.systems.shared.row_reuse import (
    Changes,
    columns_in_use,
    dense_of,
    rows_of,
    sentence_rows,
)
from ketrag_fast.systems.shared.rows import (
    U32,
    U64,
    Arrays,
    csr,
    csr_out,
    select_rows,
    sentence_order,
    strings,
    strings_out,
    whole_chunks,
)
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Earlier, Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the vocabulary and its graphs, with sentences in `sentence_order`."""
    units = inputs["units"]
    if context.earlier is not None:
        return _update_words(inputs, context.earlier, settings, context)
    found = _find_words(inputs.documents, units, settings, context)
    words = found["words"]
    count = len(words[1]) - 1
    unit_words = found["unit_words"]
    sent_words = select_rows(found["sent_words"], sentence_order(units)[0])
    return {
        **strings_out("vocabulary", words),
        **csr_out("unit_words", unit_words),
        "unit_counts": found["unit_counts"],
        **csr_out("word_units", _core.transpose(*unit_words, count)),
        **csr_out("sent_words", sent_words),
        # If chunks are units, their words and vectors are stored only once.
        **({} if whole_chunks(units) else csr_out("chunk_words", found["chunk_words"])),
        **_languages(found["chunk_language"]),
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
    new_sentences = select_rows(found["sent_words"], sentence_order(changes.new)[0])
    sentences = sentence_rows(changes, units)
    made = {
        **strings_out("vocabulary", words),
        **csr_out("unit_words", unit_words),
        "unit_counts": rows_of(*counts, changes.units)[1],
        **csr_out("word_units", _core.transpose(*unit_words, len(words[1]) - 1)),
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
