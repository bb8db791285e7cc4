"""The index of the walk and BM25: folded words, names and subjects of units and sentences."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.storage.array_spool import map_values, require_space, scratch_folder
from ketrag_fast.systems.shared.memory_bound import bounds_of
from ketrag_fast.systems.shared.row_reuse import GONE, Changes
from ketrag_fast.systems.shared.rows import (
    U32,
    U64,
    Arrays,
    csr,
    documents_of,
    lengths,
    offsets_of,
    strings,
    texts_in_context,
)
from ketrag_fast.systems.spec.stage import Earlier, Outputs, StageContext, StageInputs

_PART: Final = 1 << 20
"""Number of sentences compared at once."""
_LEAST_SPACE: Final = 5
"""Size of temporary files and arrays as a multiple of the text; 6 to 8 for ordinary prose."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the links, without sentences of titles, because the walk adds the title to each sentence."""
    units = inputs["units"]
    if context.earlier is not None:
        made = _update_links(inputs, context.earlier, settings, context)
        if made is not None:
            return made
    if _are_within(units):
        return _build_in_runs(units, settings, context)
    own = np.flatnonzero(units["sent_title"] == 0)
    sent_unit = units["sent_unit"][own]
    texts = inputs.documents.packed("text")
    owners = units["unit_document"][sent_unit]
    sentences = _core.slice_strings(texts, owners, units["sent_bytes"][own])
    del texts
    inputs.documents.forget()  # the kernel holds the texts as units and as sentences; avoid a third copy
    titles = _core.take_strings(_labelled_titles(units), units["unit_document"])
    return _core.links_build(
        *titles,
        *texts_in_context(units),
        *sentences,
        offsets_of(sent_unit, len(units["unit_tokens"])),
        language=settings.language,
        threads=context.threads,
        report=context.report,
    )


def _labelled_titles(units: Outputs) -> tuple[NDArray[np.uint8], U64]:
    """Return the titles of documents, with the paths of their files and the people of mails.

    These are indexed as well.
    """
    metadata = strings(units, "document_metadata") if "document_metadata_offsets" in units else None
    return _core.label_titles(strings(units, "document_titles"), strings(units, "document_ids"), metadata)


def _are_within(units: Outputs) -> bool:
    """Return whether every sentence ends within its unit.

    With overlapping windows it may end in the next one.
    """
    sentences, spans = units["sent_bytes"], units["unit_bytes"]
    for start in range(0, len(sentences), _PART):
        part = slice(start, start + _PART)
        whole = spans[units["sent_unit"][part]]
        is_inside = (sentences[part, 0] >= whole[:, 0]) & (sentences[part, 1] <= whole[:, 1])
        if not (is_inside | (units["sent_title"][part] != 0)).all():
            return False
    return True


def _build_in_runs(units: Outputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the links, built in runs of units that fit into the memory of the settings."""
    texts = strings(units, "unit_texts")
    count = max(len(texts[1]) - 1, 1)
    bounds = bounds_of(settings, len(texts[0]) // count)
    with scratch_folder(context.scratch) as folder:
        require_space(folder.parent, _LEAST_SPACE * len(texts[0]))
        made = _core.links_build_runs(
            _labelled_titles(units),
            units["unit_document"],
            texts,
            units["unit_bytes"],
            units["sent_unit"],
            units["sent_bytes"],
            units["sent_title"],
            folder,
            before=strings(units, "unit_before"),
            run=bounds.units,
            entries=bounds.entries,
            language=settings.language,
            threads=context.threads,
            report=context.report,
        )
        return {
            name: map_values(array, np.uint64 if name.endswith("_indptr") else np.uint32)
            if isinstance(array, Path)
            else array
            for name, array in made.items()
        }


def _update_links(
    inputs: StageInputs, earlier: Earlier, settings: Settings, context: StageContext
) -> Outputs | None:
    """Update the links by reading only new units. Returns None if most documents are new."""
    units, before = inputs["units"], earlier.parts or (earlier.arrays,)
    changes = Changes.of(earlier, units)
    count = len(changes.before["unit_tokens"])
    rows = np.where(changes.units < count, changes.units, GONE)
    read = rows == GONE
    owner = documents_of(units)[0]
    needed = np.zeros(int(units["document_count"][0]), np.bool_)
    needed[owner[units["unit_document"][read]]] = True
    if needed.sum() > len(needed) // 2:
        return None
    own = np.flatnonzero(units["sent_title"] == 0)
    sent_unit = units["sent_unit"][own]
    row = units["unit_document"][sent_unit]
    wanted = needed[owner[row]]
    place = np.cumsum(needed[owner]) - 1  # row numbers among the needed documents
    texts = inputs.documents.only(np.flatnonzero(needed).tolist()).packed("text")
    blob, ends = _core.slice_strings(
        texts, place[row[wanted]].astype(np.uint32), units["sent_bytes"][own][wanted]
    )
    offsets = np.zeros(len(own) + 1, np.uint64)
    offsets[1:][wanted] = np.diff(ends)
    return _core.links_build(
        *_core.take_strings(_labelled_titles(units), units["unit_document"]),
        *texts_in_context(units),
        blob,
        np.cumsum(offsets, dtype=np.uint64),
        offsets_of(sent_unit, len(units["unit_tokens"])),
        before=([dict(part) for part in before], rows),
        language=settings.language,
        threads=context.threads,
        report=context.report,
    )


Weights = Mapping[str, NDArray[np.float64]]
_COMPUTED: dict[int, Weights] = {}
"""Weights by the identity of an array of links, for as long as the array exists."""


def link_weights(links: Arrays) -> Weights:
    """Return `unit_norm` (BM25's norm of each unit), `keyword_idf`, `name_idf` and `subject_idf`.

    They are computed once for the links of an open generation.
    """
    key = links["unit_length"]
    found = _COMPUTED.get(id(key))
    if found is None:
        found = _COMPUTED[id(key)] = _core.links_weights(dict(links))
        weakref.finalize(key, _COMPUTED.pop, id(key), None)
    return found


def unit_subjects(links: Arrays) -> tuple[U64, U32]:
    """Return the subjects that each unit has or mentions, ascending, as rows."""
    indptr, mentioned = csr(links, "unit_mentions")
    about = links["unit_subject"]
    known = about != np.iinfo(np.uint32).max
    units = np.concatenate([np.repeat(np.arange(len(about)), lengths(indptr)), np.flatnonzero(known)])
    count = len(links["subjects_offsets"])
    cells = np.unique(units * count + np.concatenate([mentioned, about[known]]))
    return offsets_of((cells // count).astype(np.uint32), len(about)), (cells % count).astype(np.uint32)
