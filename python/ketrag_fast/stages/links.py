"""What the walk and BM25 read: folded words, names and subjects of units and sentences (25-walk)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.declarations.stage import Outputs, StageContext, StageInputs
from ketrag_fast.stages.rows import offsets_of, strings


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Title sentences are left out: the walk adds the title to each sentence by itself."""
    units = inputs["units"]
    own = np.flatnonzero(units["sent_title"] == 0)
    sent_unit = units["sent_unit"][own]
    texts = inputs.documents.packed("text")
    owners = units["unit_document"][sent_unit]
    sentences = _core.slice_strings(texts, owners, units["sent_bytes"][own])
    titles = _core.take_strings(strings(units, "document_titles"), units["unit_document"])
    return _core.links_build(
        *titles,
        *strings(units, "unit_texts"),
        *sentences,
        offsets_of(sent_unit, len(units["unit_tokens"])),
        threads=context.threads,
        report=context.report,
    )
