"""A skeleton's entities and relations as sparse matrices over units and sentences (benches/skeleton_links.py)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ketrag_fast.kernels.text import unpack

RECORDING = "openie.gpt-3.5-turbo-1106.jsonl"


def rows(arrays: Mapping[str, Any], name: str, columns: int, values: str | None = None) -> sp.csr_array:
    """A sparse matrix of stored rows; 1 where no values are named."""
    indptr, indices = (
        np.asarray(arrays[f"{name}_{part}"]).astype(np.int64) for part in ("indptr", "indices")
    )
    data = np.asarray(arrays[values], float) if values else np.ones(len(indices))
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, columns))


class Links:
    """Entities by units and by sentences of one index, and which of them are joined."""

    def __init__(self, stages: Mapping[str, Mapping[str, Any]]) -> None:
        stored, skeleton = stages["links"], stages["skeleton"]
        self.first_sentence = np.asarray(stored["first_sentence"]).astype(np.int64)
        names = unpack(skeleton["entity_name_blob"], skeleton["entity_name_offsets"])
        one = np.asarray(skeleton["relation_source"]).astype(np.int64)
        other = np.asarray(skeleton["relation_target"]).astype(np.int64)
        ends = np.concatenate([one, other]), np.concatenate([other, one])
        joined = sp.coo_array((np.ones(2 * len(one)), ends), (len(names), len(names))).tocsr()
        self.joined = (joined > 0).astype(float)
        self.units = rows(skeleton, "entity_units", len(stored["unit_subject"])).T.tocsr()
        self.sentences = self._entities_of_sentences(stages["units"], skeleton, len(names))

    def _entities_of_sentences(
        self, units: Mapping[str, Any], skeleton: Mapping[str, Any], count: int
    ) -> sp.csr_array:
        """Which entities are named in each sentence of the links, by the characters of their mentions."""
        texts = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        own = np.flatnonzero(np.asarray(units["sent_title"]) == 0)
        starts = np.asarray(units["sent_bytes"])[own, 0].astype(np.int64)
        begins = np.asarray(units["unit_span"])[:, 0].astype(np.int64)
        at: list[NDArray[np.int64]] = []
        for unit, (first, last) in enumerate(pairwise(self.first_sentence.tolist())):
            data, base = texts[unit].encode(), int(units["unit_bytes"][unit, 0])
            offsets = np.maximum(starts[first:last] - base, 0).tolist()
            characters = [len(data[:offset].decode("utf-8", "ignore")) for offset in offsets]
            at.append(np.array(characters, np.int64) + begins[unit])
        found: list[tuple[int, int]] = []
        places = (np.asarray(skeleton[f"mention_{part}"]).tolist() for part in ("entity", "unit", "start"))
        for entity, unit, start in zip(*places, strict=True):
            if len(at[unit]):
                place = max(int(np.searchsorted(at[unit], start, side="right")) - 1, 0)
                found.append((int(self.first_sentence[unit]) + place, entity))
        pairs = np.array(sorted(set(found)), np.int64).reshape(-1, 2)
        shape = (int(self.first_sentence[-1]), count)
        return sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape)
