"""Arrays that are derived from the stored links when an index opens: weights, and the subjects of units."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.systems.shared.rows import U32, U64, Arrays, csr, lengths, offsets_of

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
