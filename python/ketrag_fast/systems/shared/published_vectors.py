"""Find the vectors of texts in published generations, so that a build does not encode them again.

If only documents changed, a stage reuses rows by document (`row_reuse`). This module finds rows by text,
even if the units were cut with other settings, or come from merged indexes or from the source of an excerpt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.models.embedders.cache import span_hash, text_hash
from ketrag_fast.records import dataclass
from ketrag_fast.storage.vector_codes import SIGNS, Packing, Rows, StoredVectors, are_placeholders
from ketrag_fast.systems.shared.rows import (
    U8,
    U32,
    U64,
    Arrays,
    lengths,
    sentence_order,
    strings,
    texts_in_context,
)

Stages = Mapping[str, Arrays]
SENTENCES, TITLES = "sentence_vectors", "title_vectors"
"""Stages that store sign codes."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Rows of one generation: the keys of their texts, and how rows are read in a format."""

    keys: NDArray[np.uint64]
    rows: Callable[[Packing, NDArray[np.int64]], Rows]


class PublishedRows:
    """Rows of one kind in several generations; a `Finder`. A placeholder counts as unknown by default."""

    def __init__(self, sources: Sequence[_Source], takes_placeholders: bool = False) -> None:
        self._sources, self._takes_placeholders = sources, takes_placeholders
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
                rows = source.rows(packing, number[own] - start)
                out[own] = rows
                if not self._takes_placeholders:
                    known[own] = ~are_placeholders(rows)
        return np.asarray(known, np.bool_)


class Published:
    """The units and sentences of generations whose vectors a model made.

    With `takes_placeholders`, passages whose vectors are not computed yet stay as they are.
    """

    def __init__(self, generations: Sequence[Stages], takes_placeholders: bool = False) -> None:
        self._takes_placeholders = takes_placeholders
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
            self._finer[format] = PublishedRows(found, self._takes_placeholders)
        return self._finer[format]

    @cached_property
    def spans(self) -> PublishedRows:
        """Sentences by the text of their unit and their span in it."""
        found = self._with(SENTENCES)
        return self._rows(_Source(_span_hashes(s["units"]), _read_spans(s)) for s in found)

    @cached_property
    def sentences(self) -> PublishedRows:
        """Sentences by their texts."""
        found = self._with(SENTENCES)
        return self._rows(
            _Source(_hashes(sentence_texts(s["units"])), _reader(s[SENTENCES][SIGNS])) for s in found
        )

    @cached_property
    def titles(self) -> PublishedRows:
        """Titles by their texts."""
        found = self._with(TITLES)
        return self._rows(
            _Source(_hashes(decode(title_texts(s["units"]))), _reader(s[TITLES][SIGNS])) for s in found
        )

    def _rows(self, sources: Iterable[_Source]) -> PublishedRows:
        return PublishedRows(list(sources), self._takes_placeholders)

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


Packed = tuple[U8, U64]


def embedded_units(units: Arrays) -> Iterator[str]:
    """Yield the text of each unit after the title of its document."""
    return texts_after_titles(
        strings(units, "document_titles"), units["unit_document"], texts_in_context(units)
    )


def texts_after_titles(titles: Packed | None, owner: U32 | None, packed: Packed) -> Iterator[str]:
    """Yield each text after the title of its document, if any, decoding one at a time."""
    heads = list(_decode(titles)) if titles is not None else []
    for number, text in enumerate(_decode(packed)):
        title = heads[owner[number]] if owner is not None else ""
        yield f"{title}\n{text}" if title else text


def sentence_texts(units: Arrays) -> Iterator[str]:
    """Yield the texts of sentences that are not titles.

    A sentence that continues in the next unit ends with its first unit here.
    """
    own = _own_sentences(units)
    unit = units["sent_unit"][own].astype(np.uint32)
    span = np.clip(_inside(units, own), 0, lengths(units["unit_texts_offsets"])[unit][:, None])
    yield from _decode(_core.slice_strings(strings(units, "unit_texts"), unit, span.astype(np.uint32)))


def title_texts(units: Arrays) -> Packed:
    """Return the title of each document that has one."""
    order, own = sentence_order(units)
    document = units["chunk_document"][units["sent_chunk"][order[own:]]]
    return _core.take_strings(strings(units, "document_titles"), document)


def decode(packed: Packed) -> Iterator[str]:
    """Yield packed texts."""
    yield from _decode(packed)


@dataclass(frozen=True)
class Spans:
    """Spans in the encoded texts of units; unit `u` has the rows `indptr[u]` to `indptr[u + 1]`.

    `sentence` is the number of each span among the sentences that are not titles.
    """

    indptr: NDArray[np.int64]
    span: NDArray[np.int64]
    sentence: NDArray[np.int64]

    def rows(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the spans of each unit."""
        for start, end in pairwise(self.indptr.tolist()):
            yield [(first, last) for first, last in self.span[start:end].tolist()]


def spans_of(units: Arrays) -> Spans:
    """Return the sentences of each unit as spans."""
    own = _own_sentences(units)
    unit = units["sent_unit"][own].astype(np.int64)
    titles = lengths(units["document_titles_offsets"])[units["unit_document"]]
    before = lengths(units["unit_before_offsets"])
    head = (np.where(titles > 0, titles + 1, 0) + before)[unit]
    size = lengths(units["unit_texts_offsets"])[unit]
    span = np.clip(_inside(units, own), 0, size[:, None]) + head[:, None]
    by_unit = np.lexsort((span[:, 1], span[:, 0], unit))
    indptr = np.searchsorted(unit[by_unit], np.arange(len(units["unit_document"]) + 1))
    return Spans(indptr, span[by_unit], by_unit)


def _own_sentences(units: Arrays) -> NDArray[np.int64]:
    """Return the sentences that are not titles."""
    order, own = sentence_order(units)
    return order[:own]


def _inside(units: Arrays, sentences: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the spans of sentences in the texts of their units, which they may exceed."""
    first = units["unit_bytes"][units["sent_unit"][sentences].astype(np.int64), :1].astype(np.int64)
    inside: NDArray[np.int64] = units["sent_bytes"][sentences].astype(np.int64) - first
    return inside


def _decode(packed: Packed) -> Iterator[str]:
    blob, offsets = packed
    for start, end in pairwise(offsets.tolist()):
        yield blob[start:end].tobytes().decode("utf-8")
