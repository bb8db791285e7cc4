"""Vectors of "NAME:description" of each entity, from which local search selects its first entities."""

from __future__ import annotations

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.systems.shared.rows import F32, strings, word_rows
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the entity vectors, from the embedding model or, without one, from the fitted space."""
    skeleton, vectors = inputs["skeleton"], inputs["vectors"]
    names = unpack(*strings(skeleton, "entity_name"))
    described = unpack(*strings(skeleton, "entity_description"))
    texts = [f"{name}:{text}" if text else name for name, text in zip(names, described, strict=True)]
    if context.model is not None:
        context.report.unit = "tokens"
        found = context.model.embed(iter(texts), len(texts), sum(map(len, texts)), context.report)
        return _add_codes(np.ascontiguousarray(found, np.float32), context.threads)
    words = inputs["words"]
    vocabulary, languages = strings(words, "vocabulary"), languages_of(words)
    rows = word_rows(pack(texts), vocabulary, settings.language, languages, context.threads)
    basis = vectors["basis"]
    return _add_codes(_core.embed_rows(basis, *rows, threads=context.threads), context.threads)


def _add_codes(vectors: F32, threads: int) -> Outputs:
    """Return the vectors with an 8-bit copy that preselects candidates."""
    codes, scale, residual = _core.quantise_vectors(vectors, threads=threads)
    return {
        "entity_vectors": vectors,
        "entity_codes": codes,
        "entity_scale": scale,
        "entity_residual": residual,
    }
