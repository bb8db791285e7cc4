"""The index of the walk and BM25: folded words, names and subjects of units and sentences."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.systems.shared.row_reuse import GONE, Changes
from ketrag_fast.systems.shared.rows import documents_of, offsets_of, strings
from ketrag_fast.systems.spec.stage import Earlier, Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the links, without title sentences: the walk itself adds the title to each sentence."""
    units = inputs["units"]
    if context.earlier is not None:
        made = _update_links(inputs, context.earlier, settings, context)
        if made is not None:
            return made
    own = np.flatnonzero(units["sent_title"] == 0)
    sent_unit = units["sent_unit"][own]
    texts = inputs.documents.packed("text")
    owners = units["unit_document"][sent_unit]
    sentences = _core.slice_strings(texts, owners, units["sent_bytes"][own])
    del texts
    inputs.documents.forget()  # the kernel has the texts as units and as sentences; a third copy is too much
    titles = _core.take_strings(strings(units, "document_titles"), units["unit_document"])
    return _core.links_build(
        *titles,
        *strings(units, "unit_texts"),
        *sentences,
        offsets_of(sent_unit, len(units["unit_tokens"])),
        language=settings.language,
        threads=context.threads,
        report=context.report,
    )


def _update_links(
    inputs: StageInputs, earlier: Earlier, settings: Settings, context: StageContext
) -> Outputs | None:
    """Update the links, reading only new sentences and those of `reread_units`.

    Returns None if these are most of the sentences, as with units that are windows.
    """
    units, before = inputs["units"], earlier.arrays
    changes = Changes.of(earlier, units)
    count = len(changes.before["unit_tokens"])
    rows = np.where(changes.units < count, changes.units, GONE)
    again = np.zeros(count, np.bool_)
    again[before["reread_units"]] = True
    read = rows == GONE
    read[~read] = again[rows[~read]]
    owner = documents_of(units)[0]
    needed = np.zeros(int(units["document_count"][0]), np.bool_)
    needed[owner[units["unit_document"][read]]] = True
    if needed.sum() > len(needed) // 2:
        return None
    own = np.flatnonzero(units["sent_title"] == 0)
    sent_unit = units["sent_unit"][own]
    row = units["unit_document"][sent_unit]
    wanted = needed[owner[row]]
    place = np.cumsum(needed[owner]) - 1  # rows of the documents that are needed, among themselves
    texts = inputs.documents.only(np.flatnonzero(needed).tolist()).packed("text")
    blob, ends = _core.slice_strings(
        texts, place[row[wanted]].astype(np.uint32), units["sent_bytes"][own][wanted]
    )
    offsets = np.zeros(len(own) + 1, np.uint64)
    offsets[1:][wanted] = np.diff(ends)
    return _core.links_build(
        *_core.take_strings(strings(units, "document_titles"), units["unit_document"]),
        *strings(units, "unit_texts"),
        blob,
        np.cumsum(offsets, dtype=np.uint64),
        offsets_of(sent_unit, len(units["unit_tokens"])),
        before=(dict(before), rows),
        language=settings.language,
        threads=context.threads,
        report=context.report,
    )
