"""A citation graph: edges between documents that cite each other, and messages along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F32, F64, Csr, Report, callback, number, real, whole
from ketrag_fast.kernels.arrays import count as counted
from ketrag_fast.kernels.graphs import Rows


class CitationLinks(NamedTuple):
    """The texts that send to each text, ids ascending.

    `relevance` and `near`, its vector component, are parallel to `edges.indices`.
    """

    edges: Rows
    relevance: F64
    near: F64


def citation_links(
    first_text: ArrayLike,
    vectors: ArrayLike,
    words: Csr,
    word_count: int,
    word_weights: ArrayLike,
    senders: Csr,
    most: int = 4,
    *,
    threads: int = 0,
    report: Report = None,
) -> CitationLinks:
    """Link each text to the `most` most relevant texts of each document that sends to its document.

    The texts of document d are `first_text[d]` to `first_text[d + 1]`; `senders` [documents] lists the
    documents that send to each. Relevance is the product of `vectors` [texts, dimension] plus the product of
    words: `words` are ascending ids below `word_count`, `word_weights` their weights. Ties go to the lower
    id. Source: CG-RAG, section 3 (inter-document links).
    """
    edges, relevance, near = _core.citation_links(
        whole(first_text, np.uint64, "first_text"),
        arrays.vectors(vectors, "vectors"),
        arrays.rows(words, "words"),
        counted(word_count, "word_count"),
        real(word_weights, "word_weights"),
        arrays.rows(senders, "senders"),
        counted(most, "most"),
        threads=counted(threads, "threads"),
        report=callback(report),
    )
    return CitationLinks(Rows(*edges), relevance, near)


def edge_alphas(edges: Csr, vectors: ArrayLike, *, threads: int = 0, report: Report = None) -> F32:
    """Return the dot product of the vectors at the ends of each edge, clipped to 0 to 1."""
    return _core.edge_alphas(
        arrays.rows(edges, "edges"),
        arrays.vectors(vectors, "vectors"),
        threads=counted(threads, "threads"),
        report=callback(report),
    )


def pass_messages(
    edges: Csr,
    kinds: ArrayLike,
    alphas: ArrayLike,
    weights: ArrayLike,
    values: ArrayLike,
    *,
    share: float,
    layers: int = 2,
    wanted: int = 255,
    report: Report = None,
) -> F64:
    """Pass messages along the edges of a citation graph and return the new values.

    x'[i] = weights[i] values[i] + share (mean of alpha x[j] over in-neighbours j), starting with
    x = weights values. `edges` are the in-neighbours of each text; `kinds` and `alphas` are parallel to their
    ids, and edges of none of the `wanted` kinds (bits) are skipped.
    Source: CG-RAG without training, in the form that needs one number per text.
    """
    return _core.pass_messages(
        arrays.rows(edges, "edges"),
        whole(kinds, np.uint8, "kinds"),
        arrays.vectors(alphas, "alphas", 1),
        real(weights, "weights"),
        real(values, "values"),
        layers=counted(layers, "layers", 64),
        wanted=counted(wanted, "wanted", 255),
        share=number(share, "share"),
        report=callback(report),
    )
