"""Concepts: their graph, core selection, and a search."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import (
    F32,
    F64,
    U32,
    Csr,
    Report,
    callback,
    number,
    real,
)
from ketrag_fast.kernels.arrays import (
    count as counted,
)
from ketrag_fast.kernels.graphs import Rows

MANY = 0xFFFFFFFF
"""Marks several concepts that contributed a unit together."""


class ConceptGraph(NamedTuple):
    """Both directions of each edge; `shared`, `cosines` and `weights` (Dice) are parallel to `edges.indices`.

    `threshold` is the least cosine of an edge, as given or computed from the quantile.
    """

    edges: Rows
    shared: U32
    cosines: F32
    weights: F64
    threshold: float


def concept_graph(
    chunk_concepts: Csr,
    vectors: ArrayLike,
    *,
    theta_co: int = 3,
    theta_sem: float = 0.65,
    threads: int = 0,
    report: Report = None,
) -> ConceptGraph:
    """Link concepts that share at least `theta_co` chunks and have a cosine of at least `theta_sem`.

    `vectors` [concepts, dimension] have unit length. More than 2^27 edges are refused.
    Source: G2ConS, section 3.2.
    """
    edges, shared, cosines, weights, threshold = _core.concept_graph(
        *arrays.rows(chunk_concepts, "chunk_concepts"),
        arrays.vectors(vectors, "vectors"),
        theta_co=counted(theta_co, "theta_co", 2**32 - 1),
        theta_sem=number(theta_sem, "theta_sem"),
        threads=counted(threads, "threads"),
        report=callback(report),
    )
    return ConceptGraph(Rows(*edges), shared, cosines, weights, threshold)


def select_by_concepts(
    chunk_concepts: Csr,
    ranks: ArrayLike,
    count: int,
    *,
    report: Report = None,
) -> U32:
    """Return the `count` chunks with the largest sum of the ranks of their concepts, best first.

    `ranks` [concepts] are finite and not negative. Source: G2ConS, section 3.2.
    """
    return _core.select_by_concepts(
        *arrays.rows(chunk_concepts, "chunk_concepts"),
        real(ranks, "ranks"),
        counted(count, "count"),
        report=callback(report),
    )
