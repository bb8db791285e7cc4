"""The citation neighbourhood of passages, which an answer reads in addition (CG-RAG)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ketrag_fast.systems.cg_rag.candidates import DIRECTIONS, by_words, epsilon_of
from ketrag_fast.systems.cg_rag.edge_kinds import ADJACENT, REFERENCE
from ketrag_fast.systems.cg_rag.settings import CgRagSettings
from ketrag_fast.systems.shared.rows import Arrays
from ketrag_fast.systems.spec.system import ChannelQuery


def strongest_senders(
    query: ChannelQuery, arrays: Mapping[str, Arrays], units: Sequence[int]
) -> list[list[int]]:
    """Return the senders of each unit, strongest first: by alpha times their word factor, then by id.

    With direction `both` the receivers are included.
    """
    given = query.settings.of(CgRagSettings)
    graph = arrays["citation_graph"]
    wanted = DIRECTIONS[given.citation_direction] | ADJACENT | REFERENCE
    weights = by_words(query.question, arrays, epsilon_of(given, arrays))
    indptr, indices = graph["edges_indptr"], graph["edges_indices"]
    found = []
    for unit in units:
        first, last = indptr[unit : unit + 2].tolist()
        places = np.arange(first, last)
        others = indices[places].astype(np.int64)
        if given.citation_direction == "both":
            out = np.flatnonzero(indices == unit)
            places = np.concatenate([places, out])
            heard = np.searchsorted(indptr.astype(np.int64), out, side="right") - 1
            others = np.concatenate([others, heard])
        carried = graph["edge_kind"][places] & np.uint8(wanted) != 0
        places, others = places[carried], others[carried]
        strength = graph["edge_alpha"][places].astype(np.float64) * weights[others]
        order = np.lexsort((others, -strength))
        found.append(list(dict.fromkeys(others[order].tolist())))
    return found
