"""Postings of learned term weights: the units of each term of a sparse encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ModelMismatch, ModeUnavailable
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.row_reuse import Changes
from ketrag_fast.systems.shared.rows import (
    U32,
    U64,
    Arrays,
    csr,
    csr_out,
    lengths,
    offsets_of,
    strings,
    texts_in_context,
)
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.sparse import SparseModel, Terms

STEP: Final = 1 / 64
"""The term weight that an impact of 1 stands for (rust/core/src/rank/terms.rs)."""


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return a hash of the model's files, wherever they are stored."""
    from ketrag_fast.models.embedders.sparse import fingerprint

    spec = settings.sparse_model
    return "" if spec is None else fingerprint(spec)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the units and impacts of each term; each unit is encoded after its document's title."""
    from ketrag_fast.models.embedders.sparse import open_model

    assert settings.sparse_model is not None  # noqa: S101 - only a mode with a sparse encoder needs this stage
    model = open_model(settings.sparse_model)
    units, earlier = inputs["units"], context.earlier
    if earlier is None:
        every = np.arange(len(units["unit_document"]))
        postings = _encode(units, every, model, context)
    else:
        rows = Changes.of(earlier, units).units
        before = len(earlier.needs["units"]["unit_document"])
        fresh = np.flatnonzero(rows >= before)
        postings = _merge(_published(earlier.arrays, rows, before), _encode(units, fresh, model, context))
    term, unit, impact = postings
    order = np.lexsort((unit, term))
    ends = np.zeros(model.terms + 1, np.uint64)
    np.cumsum(np.bincount(term, minlength=model.terms), out=ends[1:])
    return {
        **csr_out("term_units", (ends, unit[order])),
        "term_impacts": impact[order],
        "model": np.frombuffer(model.fingerprint.encode(), np.uint8),
    }


def unit_terms(terms: Arrays, units: int) -> tuple[tuple[U64, U32], NDArray[np.float64]]:
    """Return the terms of each unit and their weights."""
    indptr, indices = csr(terms, "term_units")
    order = np.argsort(indices, kind="stable")
    term = np.repeat(np.arange(len(indptr) - 1, dtype=np.uint32), lengths(indptr))[order]
    return (offsets_of(indices[order], units), term), terms["term_impacts"][order] * STEP


def query_terms(
    settings: Settings, terms: Arrays, texts: Sequence[str], *, threads: int = 0, seconds: float | None = None
) -> list[Terms]:
    """Return the terms of each query, weighed by the encoder of an index.

    Args:
        settings: Settings of the query, which name the encoder.
        terms: Arrays of this stage.
        texts: The queries.
        threads: Number of threads, 0 for all cores.
        seconds: Time limit.

    Raises:
        ModelMismatch: The encoder is not that of the index.
        BackendError: The encoder cannot be loaded.
        DeadlineExceeded: The time limit is exceeded.
    """
    from ketrag_fast.models.embedders.sparse import open_model

    spec = settings.sparse_model
    if spec is None:
        raise ModeUnavailable(
            "the index was built with a sparse encoder, and the query names none",
            hint="give the one that built it: -o sparse_model=NAME_OR_PATH",
        )
    model = open_model(spec)
    if model.fingerprint.encode() != terms["model"].tobytes():
        raise ModelMismatch(
            f"{spec} is not the sparse encoder that the index was built with",
            hint="give the one that built it, or build again: ketrag index -o sparse_model=...",
        )
    return model.queries(texts, threads=threads, seconds=seconds)


Postings = tuple[U32, U32, "NDArray[np.uint8]"]
"""Terms, units and impacts, in any order."""


def _encode(units: Arrays, rows: NDArray[Any], model: SparseModel, context: StageContext) -> Postings:
    """Return the postings of some units."""
    titles = unpack(*strings(units, "document_titles"))
    texts = unpack(*_core.take_strings(texts_in_context(units), rows.astype(np.uint32)))
    owners = units["unit_document"][rows].tolist()
    titled = [f"{titles[of]}\n{text}" if titles[of] else text for of, text in zip(owners, texts, strict=True)]
    context.report.unit = "tokens"
    ends, terms, weights = model.rows(titled, threads=context.threads, report=context.report)
    impacts = np.minimum(np.rint(weights / STEP), 255).astype(np.uint8)
    some = impacts > 0
    unit = np.repeat(rows.astype(np.uint32), lengths(ends))
    return terms[some], unit[some], impacts[some]


def _published(arrays: Arrays, rows: U32, before: int) -> Postings:
    """Return the published postings of units that still exist, under their current numbers."""
    place = np.full(before, len(rows), np.uint32)
    kept = np.flatnonzero(rows < before)
    place[rows[kept]] = kept
    indptr, indices = csr(arrays, "term_units")
    term = np.repeat(np.arange(len(indptr) - 1, dtype=np.uint32), lengths(indptr))
    unit = place[indices]
    here = unit < len(rows)
    return term[here], unit[here], arrays["term_impacts"][here]


def _merge(one: Postings, other: Postings) -> Postings:
    return (
        np.concatenate([one[0], other[0]]),
        np.concatenate([one[1], other[1]]),
        np.concatenate([one[2], other[2]]),
    )
