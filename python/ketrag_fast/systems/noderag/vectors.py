"""Vectors of the nodes with a text: chunks, units, attributes, elements (NodeRAG, 3.6)."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.systems.shared.rows import strings, word_rows
from ketrag_fast.systems.shared.vectors import chunk_vectors
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

TEXTS = (
    ("noderag_graph", "semantic_unit"),
    ("noderag_attributes", "attribute"),
    ("noderag_elements", "element"),
)
"""Stage and name of the texts after the chunks, in row order."""


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the vectors: of chunks from their stage, the others from the model or the fitted space."""
    vectors = inputs["vectors"]
    own = chunk_vectors(inputs.get("chunk_vectors", {}), vectors)
    chunks = (StoredVectors.of(vectors) if own is None else own).decode()
    texts = [text for stage, name in TEXTS for text in unpack(*strings(inputs[stage], name))]
    if context.model is not None:
        context.report.unit = "tokens"
        found = context.model.embed(iter(texts), len(texts), sum(map(len, texts)), context.report)
    else:
        vocabulary, languages = strings(inputs["words"], "vocabulary"), languages_of(inputs["words"])
        rows = word_rows(pack(texts), vocabulary, settings.language, languages, context.threads)
        found = _core.embed_rows(vectors["basis"], *rows, threads=context.threads)
    every = np.ascontiguousarray(np.concatenate([chunks, found]), np.float32)
    codes, scale, residual = _core.quantise_vectors(every, threads=context.threads)
    return {"vectors": every, "node_codes": codes, "node_scale": scale, "node_residual": residual}
