"""Find the vectors of texts in published generations, so that a build does not encode them again.

If only documents changed, a stage reuses rows by document (`row_reuse`). This module finds rows by text,
even if the units were cut with other settings, or come from merged indexes or from the source of an excerpt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.models.embedders.cache import span_hash, text_hash
from ketrag_fast.storage.vector_codes import SIGNS, Packing, Rows, StoredVectors
from ketrag_fast.systems.shared.embedded_texts import (
    decode,
    embedded_units,
    sentence_texts,
    spans_of,
    title_texts,
)
from ketrag_fast.systems.shared.rows import Arrays

Stages = Mapping[str, Arrays]
SENTENCES, TITLES = "sentence_vectors", "title_vectors"
"""Stages that store sign codes."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Rows of one generation: the keys of their texts, and how rows are read in a format."""

    keys: NDArray[np.uint64]
    rows: Callable[[Packing, NDArray[np.int64]], Rows]


class PublishedRows:
    """Rows of one kind in several generations; a `Finder`."""

    def __init__(self, sources: Sequence[_Source]) -> None:
        self._sources = sources
        keys = np.concatenate([source.keys for source in sources] or [np.zeros((0, 2), np.uint64)])
        self._order = np.argsort(keys[:, 0], kind="stable")
        self._keys = keys[self._order]
        self._starts = np.cumsum([0, *(len(source.keys) for source in sources)])

    def fill(self, packing: Packing, keys: Sequence[bytes], out: NDArray[Any]) -> NDArray[np.bool_]:
        """See `Finder`."""
        known = np.zeros(len(keys), np.bool_)
        if not len(self._keys) or not keys:
            return known
        wanted = _as_numbers(list(keys))
        place = np.minimum(np.searchsorted(self._keys[:, 0], wanted[:, 0]), len(self._keys) - 1)
        known[:] = (self._keys[place] == wanted).all(axis=1)
        number = self._order[place]
        for source, start, stop in zip(self._sources, self._starts[:-1], self._starts[1:], strict=True):
            own = np.flatnonzero(known & (number >= start) & (number < stop))
            if len(own):
                out[own] = source.rows(packing, number[own] - start)
        return np.asarray(known, np.bool_)


class Published:
    """The units and sentences of generations whose vectors a model made."""

    def __init__(self, generations: Sequence[Stages]) -> None:
        self._generations = [stages for stages in generations if "vectors" in stages]
        self._finer: dict[str, PublishedRows] = {}

    def units(self, format: str) -> PublishedRows:  # noqa: A002 - the name of the setting
        """Return units by their texts after titles, of generations with this format or a finer one."""
        if format not in self._finer:
            found = [
                _Source(_hashes(embedded_units(stages["units"])), _read_units(vectors))
                for stages in self._generations
                if (vectors := StoredVectors.of(stages["vectors"])).is_finer(format)
            ]
            self._finer[format] = PublishedRows(found)
        return self._finer[format]

    @cached_property
    def spans(self) -> PublishedRows:
        """Sentences by the text of their unit and their span in it."""
        found = self._with(SENTENCES)
        return PublishedRows([_Source(_span_hashes(s["units"]), _read_spans(s)) for s in found])

    @cached_property
    def sentences(self) -> PublishedRows:
        """Sentences by their texts."""
        found = self._with(SENTENCES)
        return PublishedRows(
            [_Source(_hashes(sentence_texts(s["units"])), _reader(s[SENTENCES][SIGNS])) for s in found]
        )

    @cached_property
    def titles(self) -> PublishedRows:
        """Titles by their texts."""
        found = self._with(TITLES)
        return PublishedRows(
            [_Source(_hashes(decode(title_texts(s["units"]))), _reader(s[TITLES][SIGNS])) for s in found]
        )

    def _with(self, stage: str) -> list[Stages]:
        return [stages for stages in self._generations if SIGNS in stages.get(stage, {})]


def _read_units(vectors: StoredVectors) -> Callable[[Packing, NDArray[np.int64]], Rows]:
    return vectors.packed


def _reader(signs: NDArray[np.uint8]) -> Callable[[Packing, NDArray[np.int64]], Rows]:
    """Return the reader of signs, which have no other format."""
    return lambda _, numbers: signs[numbers]


def _read_spans(stages: Stages) -> Callable[[Packing, NDArray[np.int64]], Rows]:
    """Return the reader of sentences in the order of `spans_of`."""
    signs, sentence = stages[SENTENCES][SIGNS], spans_of(stages["units"]).sentence
    return lambda _, numbers: signs[sentence[numbers]]


def _hashes(texts: Iterator[str]) -> NDArray[np.uint64]:
    return _as_numbers([text_hash(text) for text in texts])


def _span_hashes(units: Arrays) -> NDArray[np.uint64]:
    texts = (text_hash(text) for text in embedded_units(units))
    return _as_numbers(
        [
            span_hash(text, span)
            for text, own in zip(texts, spans_of(units).rows(), strict=True)
            for span in own
        ]
    )


def _as_numbers(keys: list[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(keys), "<u8").reshape(-1, 2)
