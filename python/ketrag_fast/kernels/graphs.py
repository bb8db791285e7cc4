"""PageRank, concepts, and the skeleton of entities and relations merged from an LLM's replies.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Integer arrays of any
type are converted; arrays that do not fit together raise `InputError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import (
    F64,
    U32,
    U64,
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
from ketrag_fast.kernels.arrays import (
    count as counted,
)

_U32_MOST = 2**32 - 1


class Rows(NamedTuple):
    """Compressed rows: row i is `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: U64
    indices: U32


def pagerank(
    indptr: ArrayLike,
    indices: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    restart: ArrayLike | None = None,
    teleport: float = 0.15,
    tolerance: float = 1e-9,
    steps: int | None = None,
    lazy: bool = False,
    until: str | None = None,
    threads: int = 0,
    report: Report = None,
) -> F64:
    """Return the PageRank of every node of a directed graph (an undirected one holds each edge both ways).

    Args:
        indptr, indices: row `i` holds the targets of node `i`.
        weights: [edges], parallel to `indices`; default all 1.
        restart: [nodes], scaled to sum 1; makes it personalised.
        teleport: probability of returning to the restart distribution in a step. Nodes without
            out-edges give it their mass.
        tolerance: the L1 error at which it stops, unless `steps` is given (exactly that number of
            steps).
        until: "networkx" stops when a step changes less than `n * 1e-6` (parity).
        lazy: stays in place instead of returning (parity with NodeRAG's code; needs `steps`).

    Returns:
        float64 [nodes], summing to 1, equal to the last bit on any number of threads. Source: KET-RAG,
        Eq. (1); NodeRAG's shallow PPR is `steps=2, teleport=0.5`.

    Examples:
        >>> pagerank([0, 1, 2, 2], [2, 2]).round(3).tolist()
        [0.213, 0.213, 0.574]
    """
    kind = ("tolerance" if steps is None else "steps") if until is None else text(until, "until")
    return _core.pagerank(
        whole(indptr, np.uint64, "indptr"),
        whole(indices, np.uint32, "indices"),
        None if weights is None else real(weights, "weights"),
        None if restart is None else real(restart, "restart"),
        teleport=number(teleport, "teleport"),
        until=kind,
        tolerance=number(tolerance, "tolerance"),
        steps=0 if steps is None else count(steps, "steps", _U32_MOST),
        lazy=flag(lazy, "lazy"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


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
        most=counted(most, "most"),
        threads=counted(threads, "threads"),
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
