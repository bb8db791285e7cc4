"""Concepts: the most characteristic words of chunks, their graph, core selection, and a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import (
    U32,
    Csr,
    Packed,
    Report,
    callback,
    pack_texts,
    whole,
)
from ketrag_fast.kernels.arrays import (
    count as counted,
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
        most=counted(most, "most"),
        threads=counted(threads, "threads"),
        report=callback(report),
    )
    return Concepts(words, Rows(*named))
