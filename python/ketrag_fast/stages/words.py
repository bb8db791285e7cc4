"""The keyword vocabulary and the text-keyword graph (KET-RAG 1.2 steps 2, 9 and 10)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.pipeline.stage import Outputs, Stage, StageContext, StageInputs
from ketrag_fast.stages.rows import csr_out, strings_out, take_rows


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Sentences are numbered as their vectors are: those of the texts first, then one title a document."""
    units = inputs["units"]
    documents = inputs.documents
    found = _core.vocabulary(
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
    words = found["words"]
    count = len(words[1]) - 1
    unit_words = found["unit_words"]
    title = units["sent_title"].astype(bool)
    titles = np.flatnonzero(title)
    owners = units["chunk_document"][units["sent_chunk"][titles]]
    first_of_document = np.unique(owners, return_index=True)[1]
    order = np.concatenate([np.flatnonzero(~title), titles[first_of_document]])
    sent_words = take_rows(found["sent_words"], order)
    return {
        **strings_out("vocabulary", words),
        **csr_out("unit_words", unit_words),
        "unit_counts": found["unit_counts"],
        **csr_out("word_units", _core.transpose(*unit_words, count, threads=context.threads)),
        **csr_out("sent_words", sent_words),
        **csr_out("chunk_words", found["chunk_words"]),
    }


STAGE = Stage(
    "words", version=1, needs=("documents", "units"), settings=("language",), run=run, unit="chunks"
)
