"""Kernels of the published systems on NumPy arrays: concepts, merged replies, and texts with common words.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Integer arrays of any
type are converted; arrays that do not fit together raise `InputError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import (
    U32,
    Csr,
    Packed,
    Report,
    callback,
    count,
    flag,
    number,
    pack_texts,
    real,
    table,
    text,
    whole,
)
from ketrag_fast.kernels.graphs import Rows


class Concepts(NamedTuple):
    """The words that are concepts, ascending, and for each chunk its concepts (indices into `words`).

    Examples:
        >>> found = concepts(([0, 1], [0]), [1], ["fram"])
        >>> found.named.indptr.tolist()
        [0, 1]
    """

    words: U32
    named: Rows


def concepts(
    chunk_words: Csr,
    counts: ArrayLike,
    vocabulary: Sequence[str] | Packed,
    *,
    most: int = 50,
    threads: int = 0,
    report: Report = None,
) -> Concepts:
    """Return the `most` words of each chunk with the largest TF-IDF, and their union.

    Words of one letter are not concepts, except in scripts without spaces.

    Args:
        chunk_words: the distinct words of each chunk, ascending.
        counts: how often the chunk contains each of these words.
        vocabulary: all words, in UTF-8 byte order.

    Source: G2ConS, section 3.2; Ramos 2003.

    Examples:
        >>> found = concepts(([0, 2, 4], [0, 1, 0, 2]), [1, 1, 1, 1], ["built", "fram", "maud"], most=1)
        >>> found.words.tolist(), found.named.indices.tolist()
        ([1, 2], [0, 1])
    """
    words, named = _core.concepts(
        *arrays.rows(chunk_words, "chunk_words"),
        whole(counts, np.uint32, "counts"),
        pack_texts(vocabulary, "vocabulary"),
        most=count(most, "most"),
        threads=count(threads, "threads"),
        report=callback(report),
    )
    return Concepts(words, Rows(*named))


Arrays = Mapping[str, NDArray[Any]]


def fold_skeleton(
    replies: Arrays,
    chunk_units: ArrayLike,
    unit_texts: Sequence[str] | Packed,
    unit_spans: ArrayLike,
    *,
    encoding: str = "cl100k_base",
    description_tokens: int = 500,
    threads: int = 0,
    report: Report = None,
) -> dict[str, NDArray[Any]]:
    """Merge the entities and relations extracted from chunks into one graph.

    Args:
        replies: one row for each chunk that was read, in ascending id: `reply_chunk` [c],
            `reply_entities_indptr` and `reply_relations_indptr` [c + 1], the packed strings `entity_name`,
            `entity_type`, `entity_description`, `relation_source`, `relation_target`,
            `relation_description` (each `NAME_blob` and `NAME_offsets`) and `relation_strength`.
        chunk_units: the units of chunk `c` are `chunk_units[c]:chunk_units[c + 1]`.
        unit_spans: [units, 2], code points of their documents.
        description_tokens: limit of a description, which lists its distinct lines, most frequent first.

    Returns:
        `entity_*`, `relation_*` and `mention_*` (spans of names in the text), with the token counts of the
        printed rows. Names and types are upper-cased; records of one name, and relations of one pair, are
        merged; undeclared ends of relations become entities. `fold_dropped` counts dropped [entities without
        a name, relations without an end, loops]. Source: KET-RAG, Alg. 1; graphrag 0.4.1.

    Examples:
        >>> import numpy as np
        >>> from ketrag_fast.kernels import pack, unpack
        >>> columns = {"entity_name": "Nansen", "entity_type": "person", "entity_description": "explorer",
        ...     "relation_source": "Nansen", "relation_target": "Fram", "relation_description": "built"}
        >>> replies = {"reply_chunk": [0], "reply_entities_indptr": [0, 1],
        ...     "reply_relations_indptr": [0, 1], "relation_strength": [2.0]}
        >>> for name, value in columns.items():
        ...     replies[f"{name}_blob"], replies[f"{name}_offsets"] = pack([value])
        >>> graph = fold_skeleton(replies, [0, 1], ["Nansen built the Fram."], [[0, 22]])
        >>> unpack(graph["entity_name_blob"], graph["entity_name_offsets"])
        ['NANSEN', 'FRAM']
    """
    table(replies, "the replies", [*_FLAT, *(f"{name}_{part}" for name in _STRINGS for part in _PARTS)])
    strings = {name: _strings(replies, name) for name in _STRINGS}
    spans = whole(unit_spans, np.uint32, "unit_spans", None)
    if spans.size % 2 or (spans.ndim != 1 and spans.shape[1:] != (2,)):
        raise InputError(f"unit_spans must be pairs, not of shape {spans.shape}")
    return _core.fold_skeleton(
        whole(replies["reply_chunk"], np.uint32, "reply_chunk"),
        whole(replies["reply_entities_indptr"], np.uint64, "reply_entities_indptr"),
        strings["entity_name"],
        strings["entity_type"],
        strings["entity_description"],
        whole(replies["reply_relations_indptr"], np.uint64, "reply_relations_indptr"),
        strings["relation_source"],
        strings["relation_target"],
        strings["relation_description"],
        real(replies["relation_strength"], "relation_strength"),
        whole(chunk_units, np.uint64, "chunk_units"),
        pack_texts(unit_texts, "unit_texts"),
        spans.reshape(-1, 2),
        text(encoding, "encoding"),
        description_tokens=count(description_tokens, "description_tokens"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def _strings(arrays: Arrays, name: str) -> Packed:
    blob, offsets = arrays[f"{name}_blob"], arrays[f"{name}_offsets"]
    return whole(blob, np.uint8, f"{name}_blob"), whole(offsets, np.uint64, f"{name}_offsets")


_FLAT = ("reply_chunk", "reply_entities_indptr", "reply_relations_indptr", "relation_strength")
_STRINGS = (
    "entity_name",
    "entity_type",
    "entity_description",
    "relation_source",
    "relation_target",
    "relation_description",
)
_PARTS = ("blob", "offsets")


Kernel = Literal["auto", "avx512", "avx2", "neon", "portable"]


class CooccurrenceNeighbours(NamedTuple):
    """`ids` and `counts`, uint32 [texts, k]; unused entries hold `NOBODY` and 0.

    Examples:
        >>> cooccurrence_knn([0, 1, 2], [0, 0], columns=1, k=1).counts.tolist()
        [[1], [1]]
    """

    ids: U32
    counts: U32


def cooccurrence_knn(
    indptr: ArrayLike,
    indices: ArrayLike,
    columns: int,
    k: int,
    *,
    max_df_ratio: float | None = None,
    allow_zero: bool = False,
    rows: tuple[int, int] | None = None,
    threads: int = 0,
    kernel: Kernel = "auto",
    report: Report = None,
) -> CooccurrenceNeighbours:
    """Return for each text the `k` other texts with the most distinct words in common (KET-RAG, Alg. 3).

    Args:
        indptr, indices: compressed rows: the distinct word ids of each text, strictly ascending and
            below `columns`.
        max_df_ratio: ignores words that occur in more than this share of the texts, which makes large
            corpora much cheaper and the result approximate.
        allow_zero: also returns neighbours without a common word.
        rows: computes neighbours for texts `rows[0]` to `rows[1] - 1` only.
        kernel: the instruction set (see `cooccurrence_kernels`); it does not change the result.
        report: called with (done, total) some twenty times a second; False stops the work.

    Returns:
        Exact neighbours, count descending, then id ascending.

    Raises:
        InputError: for invalid rows, a ratio outside 0 to 1, rows out of range, or a kernel that this
            machine lacks.
        Cancelled: when stopped.

    Examples:
        >>> near = cooccurrence_knn([0, 2, 4, 5], [0, 1, 0, 1, 1], columns=2, k=1)
        >>> near.ids.tolist(), near.counts.tolist()
        ([[1], [0], [0]], [[2], [2], [1]])
    """
    return CooccurrenceNeighbours(
        *_core.cooccurrence_knn(
            whole(indptr, np.uint64, "indptr"),
            whole(indices, np.uint32, "indices"),
            count(columns, "columns"),
            count(k, "k"),
            max_df_ratio=None if max_df_ratio is None else number(max_df_ratio, "max_df_ratio"),
            allow_zero=flag(allow_zero, "allow_zero"),
            rows=None if rows is None else _range(rows),
            threads=count(threads, "threads"),
            kernel=text(kernel, "kernel"),
            report=callback(report),
        )
    )


def cooccurrence_kernels() -> list[str]:
    """Return the values of `kernel` that this machine can run, the widest first."""
    return _core.cooccurrence_kernels()


def _range(rows: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise InputError("rows must be (first, last + 1)")
    return count(rows[0], "rows (first)"), count(rows[1], "rows (last + 1)")
