"""Kernels for drawing graphs: weighted graphs, positions, communities, neighbourhoods and paths.

All kernels here read a `Weighted` graph: it is undirected, without self-loops, and stores each edge in both
rows with the same positive weight. `weighted_graph` builds one from a list of edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import (
    F64,
    U32,
    U64,
    Report,
    callback,
    count,
    marks,
    number,
    real,
    whole,
)

_SEEDS = 2**64 - 1
_NODES = 2**32 - 1


class Weighted(NamedTuple):
    """Neighbours of each node: row i is `indices[indptr[i]:indptr[i + 1]]`, ascending, with `weights`."""

    indptr: U64
    indices: U32
    weights: F64


class Neighbourhood(NamedTuple):
    """Nodes [k], best first, with their scores [k] and the position of the node that each was reached from
    [k] (2**32 - 1 for a seed).
    """

    nodes: U32
    scores: F64
    parents: U32


class InducedEdges(NamedTuple):
    """Edges between chosen nodes, as positions in the list of nodes, source < target.

    `total` also counts omitted edges.
    """

    sources: U32
    targets: U32
    weights: F64
    total: int


def weighted_graph(
    nodes: int, sources: ArrayLike, targets: ArrayLike, weights: ArrayLike, *, report: Report = None
) -> Weighted:
    """Return the graph of `nodes` nodes with the edges `sources` - `targets` [e] of positive `weights` [e].

    Directions are ignored, self-loops are dropped, and weights of repeated edges are added.
    Raises InputError for a node that does not exist or a weight that is not positive and finite.

    Examples:
        >>> graph = weighted_graph(3, [0, 2, 1], [2, 0, 1], [1.0, 0.5, 9.0])
        >>> graph.indptr.tolist(), graph.indices.tolist(), graph.weights.tolist()
        ([0, 1, 1, 2], [2, 0], [1.5, 1.5])
    """
    return Weighted(
        *_core.weighted_graph(
            count(nodes, "nodes", _NODES),
            whole(sources, np.uint32, "sources"),
            whole(targets, np.uint32, "targets"),
            real(weights, "weights"),
            report=callback(report),
        )
    )


def layout(
    graph: Weighted,
    *,
    steps: int = 60,
    theta: float = 1.1,
    seed: int = 42,
    threads: int = 0,
    report: Report = None,
) -> F64:
    """Return positions for a picture of a graph, f64[nodes, 2] within -1 to 1, related nodes close together.

    A multilevel force-directed layout with the forces of ForceAtlas2 (Jacomy and others 2014) and
    Barnes-Hut repulsion. The result is the same to the bit on any number of threads and on every machine.

    Args:
        graph: See `weighted_graph`.
        steps: Number of steps on the largest level; the smallest level takes four times as many.
        theta: Accuracy: a group of nodes counts as one node if size / distance is below this; 0 is exact.
        seed: Random seed of the initial positions.
        threads: Number of threads; 0 for all cores.
        report: Called with (done, total); False stops the work.

    Examples:
        >>> path = weighted_graph(3, [0, 1], [1, 2], [1.0, 1.0])
        >>> ends, middle = layout(path)[[0, 2]], layout(path)[1]
        >>> bool(np.abs(ends.mean(axis=0) - middle).max() < 0.1)
        True
    """
    return _core.graph_layout(
        *_arrays(graph),
        steps=count(steps, "steps"),
        theta=number(theta, "theta"),
        seed=count(seed, "seed", _SEEDS),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def communities(graph: Weighted, *, resolution: float = 1.0, report: Report = None) -> U32:
    """Return the community of each node [nodes], numbered by size descending, then by smallest member.

    Louvain's algorithm (Blondel and others 2008) in the order of node ids; every community is connected.
    A `resolution` above 1 gives smaller communities.

    Examples:
        >>> two_triangles = weighted_graph(6, [0, 1, 2, 3, 4, 3, 2], [1, 2, 0, 4, 5, 5, 3], [1.0] * 7)
        >>> communities(two_triangles).tolist()
        [0, 0, 0, 1, 1, 1]
    """
    return _core.graph_communities(
        *_arrays(graph), resolution=number(resolution, "resolution"), report=callback(report)
    )


def neighbourhood(
    graph: Weighted,
    seeds: ArrayLike,
    limit: int,
    *,
    hidden: ArrayLike = (),
    report: Report = None,
) -> Neighbourhood:
    """Return at most `limit` nodes around `seeds`, best first.

    A seed has score 1. Over an edge of weight w, node u passes its score on to v multiplied by
    w / max w / sqrt(degree(u)) * degree(v) / (degree(v) + 1), so that dead ends come after nodes that
    lead on. Equal scores are ordered by id.

    Args:
        graph: See `weighted_graph`.
        seeds: Ids of nodes; they come first, in this order.
        limit: Maximum number of nodes.
        hidden: Empty, or a boolean per node: hidden nodes are left out and paths do not pass through them.
        report: Called with (done, total); False stops the work.

    Examples:
        >>> graph = weighted_graph(4, [0, 0, 1], [1, 2, 3], [1.0, 3.0, 1.0])
        >>> neighbourhood(graph, [0], 3).nodes.tolist()
        [0, 2, 1]
    """
    return Neighbourhood(
        *_core.graph_neighbourhood(
            *_arrays(graph),
            whole(seeds, np.uint32, "seeds"),
            count(limit, "limit"),
            marks(hidden, "hidden"),
            report=callback(report),
        )
    )


def induced_edges(
    graph: Weighted, nodes: ArrayLike, most: int = 2**31, *, report: Report = None
) -> InducedEdges:
    """Return at most `most` edges between `nodes` [k], the heaviest first chosen, ordered by their ends.

    Examples:
        >>> graph = weighted_graph(4, [0, 1, 2, 2], [1, 2, 0, 3], [1.0, 3.0, 2.0, 9.0])
        >>> edges = induced_edges(graph, [2, 0, 1], most=2)
        >>> edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), edges.total
        ([0, 0], [1, 2], [2.0, 3.0], 3)
    """
    chosen = whole(nodes, np.uint32, "nodes")
    return InducedEdges(
        *_core.induced_edges(*_arrays(graph), chosen, count(most, "most"), report=callback(report))
    )


def shortest_path(graph: Weighted, start: int, end: int, *, report: Report = None) -> U32:
    """Return the nodes of a path from `start` to `end` with the fewest edges; empty if no path exists.

    Examples:
        >>> graph = weighted_graph(4, [0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
        >>> shortest_path(graph, 3, 1).tolist()
        [3, 2, 1]
    """
    first, last = count(start, "start", _NODES), count(end, "end", _NODES)
    return _core.shortest_path(*_arrays(graph), first, last, report=callback(report))


def _arrays(graph: Weighted) -> tuple[U64, U32, F64]:
    if not isinstance(graph, tuple | list) or len(graph) != 3:
        raise InputError("graph must be (indptr, indices, weights)", hint="build it with weighted_graph")
    indptr, indices, weights = graph
    return (
        whole(indptr, np.uint64, "graph (indptr)"),
        whole(indices, np.uint32, "graph (indices)"),
        real(weights, "graph (weights)"),
    )
