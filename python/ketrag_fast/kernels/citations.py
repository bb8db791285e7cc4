"""A graph of citations: edges between documents that cite each other, and messages along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F32, F64, Csr, Report, callback, number, real, whole
from ketrag_fast.kernels.arrays import count as counted
from ketrag_fast.kernels.graphs import Rows

ADJACENT, REFERENCE, CITED, CITING = 1, 2, 4, 8
"""Kinds of edges, one bit each: from the text before, from what is referred to, from what is cited, and from
what cites."""


class CitationLinks(NamedTuple):
    """The texts that send to each text, ids ascending; beside `edges.indices` lie `relevance` and `near`, the
    part of it that is by vectors.
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
    """Links each text to the `most` texts of each document that its own document hears from.

    The texts of document d are `first_text[d]` to `first_text[d + 1]`; `senders` [documents] names the
    documents that each hears from. Chosen are those of the largest product of `vectors` [texts, dimension]
    plus product of words: `words` are ascending ids below `word_count`, `word_weights` their weights. Ties go
    by id. Source: CG-RAG, section 3 (inter-document links).
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
    """The product of the vectors at the ends of each edge, from 0 to 1: their cosine at unit length."""
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
    layers: int = 2,
    wanted: int = 255,
    share: float | None = None,
    residual: float = 0.0,
    report: Report = None,
) -> F64:
    """x'[i] = (m[i] + sum of alpha m[j] over the in-neighbours j) / (their number + 1), with m = weights x.

    With a `share` of 0 to 1 the others' messages are added to what a text has itself, instead of a mean over
    all: x'[i] = weights[i] values[i] + share (mean of alpha x[j]), x being weights values at first.
    `edges` are the in-neighbours of each text; `kinds` and `alphas` lie beside their ids, and edges of none
    of the `wanted` kinds (bits) are passed over. `residual` is the share of `values` in what comes out.
    Source: CG-RAG without training, in the form that needs one number a text.
    """
    return _core.pass_messages(
        arrays.rows(edges, "edges"),
        whole(kinds, np.uint8, "kinds"),
        arrays.vectors(alphas, "alphas", 1),
        real(weights, "weights"),
        real(values, "values"),
        layers=counted(layers, "layers", 64),
        wanted=counted(wanted, "wanted", 255),
        share=None if share is None else number(share, "share"),
        residual=number(residual, "residual"),
        report=callback(report),
    )
